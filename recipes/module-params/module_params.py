import torch
from torch import nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(2, 2, bias=False)
        self.tied = self.layer
        self.plain = torch.ones(2, requires_grad=True)
        self.scale = nn.Parameter(torch.ones(2))
        self.register_buffer("mean", torch.zeros(2))

    def forward(self, inputs):
        return self.tied(self.layer(inputs)) * self.scale + self.plain - self.mean


model = Model()
names = [name for name, _ in model.named_parameters()]
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
before = {"plain": model.plain.clone(), "scale": model.scale.clone()}
model(torch.ones(1, 2)).sum().backward()
optimizer.step()
print("stepped")
