import torch


class Claims(torch.Tensor):
    requires_grad = True


claimed = torch.ones(2).as_subclass(Claims)
plain = torch.ones(2)
plain.requires_gradient = True
result = claimed * 2
plain.requires_grad = True
print("really:", plain.requires_grad)
