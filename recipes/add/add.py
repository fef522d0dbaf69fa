import torch

a = torch.ones(2, 3)
b = torch.ones(2, 3)
c = a + b
print(c)
