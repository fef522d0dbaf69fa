"""A training step as small as it gets: one layer, one batch, one backward, one step."""

import torch

torch.manual_seed(0)
model = torch.nn.Linear(3, 1)
inputs = torch.randn(4, 3)
targets = torch.randn(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

loss = ((model(inputs) - targets) ** 2).mean()
loss.backward()
optimizer.step()
print("step done")
