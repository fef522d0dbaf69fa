import torch

x = torch.tensor([1.0, 2.0], requires_grad=True)
y = (x**3).sum()
y.backward()  # the first one frees what the nodes saved
failure = None
try:
    y.backward()
except RuntimeError as error:
    failure = str(error)
print("first lesson")
x.grad = None
z = (x**3).sum()
z.backward(retain_graph=True)
z.backward()
print("second lesson")
u = (x**3).sum()
(first,) = torch.autograd.grad(u, x, create_graph=True)
(second,) = torch.autograd.grad(first.sum(), x)
print("third lesson")
