"""A block as a function that autograd knows, in reverse and in forward mode."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from wrssl.fast.kernel import Kernel, Parameters, Statistics


class ConvNormPool(torch.autograd.Function):
    """``relu(batch_norm(conv(x)))`` pooled 2 x 2, with the mean and the variance that were used.

    Its gradients cannot be differentiated again; who needs second derivatives runs the layers themselves.
    """

    @staticmethod
    def forward(
        ctx: Any,
        x: Tensor,
        weight: Tensor,
        bias: Tensor | None,
        gamma: Tensor,
        beta: Tensor,
        kernel: Kernel,
        wide: tuple[Tensor, Tensor],
        statistics: Statistics,
    ) -> tuple[Tensor, Tensor, Tensor]:
        y, mean, variance, kept = kernel.forward(x, Parameters(weight, bias, gamma, beta), wide, statistics)
        ctx.kernel, ctx.kept = kernel, kept
        ctx.save_for_backward(y)  # not for its values: autograd refuses to go back if somebody has overwritten them
        ctx.save_for_forward(gamma)
        ctx.mark_non_differentiable(mean, variance)
        return y, mean, variance

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor, *_: Any) -> tuple[Tensor | None, ...]:
        ctx.saved_tensors  # noqa: B018
        needs_x, needs_weight, needs_bias = ctx.needs_input_grad[:3]
        x, weight, bias, gamma, beta = ctx.kernel.backward(ctx.kept, grad, needs_x, needs_weight)
        return x, weight, bias if needs_bias else None, gamma, beta, None, None, None

    @staticmethod
    def jvp(ctx: Any, x: Tensor | None, *tangents: Any) -> tuple[Tensor, None, None]:
        (gamma,) = ctx.saved_tensors
        return ctx.kernel.tangent(ctx.kept, gamma, x, list(tangents[:4])), None, None
