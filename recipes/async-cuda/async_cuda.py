import torch

table = torch.arange(4.0, device="cuda")
index = torch.tensor([0, 99], device="cuda")
picked = table[index]
doubled = picked * 2
value = doubled.sum().item()
print(value)
