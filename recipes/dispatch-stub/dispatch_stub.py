import torch

print("capability:", torch.backends.cpu.get_cpu_capability())
a = torch.ones(8)
print(a + a)
