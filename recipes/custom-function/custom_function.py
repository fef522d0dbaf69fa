import torch


class Scale(torch.autograd.Function):
    """x * factor**2, differentiable in both."""

    @staticmethod
    def forward(ctx, x, factor, name):
        ctx.save_for_backward(x, factor)
        return x * factor**2

    @staticmethod
    def backward(ctx, gradient):
        x, factor = ctx.saved_tensors
        gradient_x = gradient * factor**2
        gradient_factor = (gradient * x * 2 * factor).sum()
        return gradient_x, gradient_factor, None


class Forgetful(Scale):
    @staticmethod
    def backward(ctx, gradient):
        return gradient


x = torch.tensor([1.0, 2.0], requires_grad=True)
factor = torch.tensor(3.0, requires_grad=True)
y = Scale.apply(x, factor, "a name")
y.sum().backward()
failure = None
try:
    Forgetful.apply(x, factor, "a name").sum().backward()
except RuntimeError as error:
    failure = str(error)
inputs = (x.detach().double().requires_grad_(), factor.detach().double().requires_grad_(), "a name")
checked = torch.autograd.gradcheck(Scale.apply, inputs)
print("gradcheck:", checked)
