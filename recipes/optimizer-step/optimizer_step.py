import torch
from torch.optim.sgd import _single_tensor_sgd as update

weight = torch.tensor([1.0, 2.0], requires_grad=True)
optimizer = torch.optim.SGD([weight], lr=0.5)
address, version = weight.data_ptr(), weight._version
(weight * 3).sum().backward()
(weight * 3).sum().backward()
optimizer.step()
optimizer.zero_grad()
print("done", weight)
