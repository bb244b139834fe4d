"""A block as a function that autograd knows, in reverse and in forward mode."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from wrssl.fast.kernel import Kernel, Parameters, Wide
from wrssl.fast.statistics import Statistics


class ConvNormPool(torch.autograd.Function):
    """``relu(batch_norm(conv(x)))`` pooled 2 x 2; puts mean and variance of the batch into the list ``moments``.

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
        wide: Wide,
        statistics: Statistics,
        moments: list[Tensor] | None,
    ) -> Tensor:
        """The pooled result."""
        parameters = Parameters(weight, bias, gamma, beta)
        y, kept = kernel.forward(x, parameters, wide, statistics)
        ctx.kernel, ctx.kept = kernel, kept
        ctx.save_for_backward(y)  # not for its values: autograd refuses to go back if somebody has overwritten them
        ctx.save_for_forward(gamma)
        if moments is not None:
            moments.extend(kernel.moments(kept, parameters))
        return y

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        """The gradients of input and parameters."""
        ctx.saved_tensors  # noqa: B018
        needs_x, needs_weight, needs_bias = ctx.needs_input_grad[:3]
        x, weight, bias, gamma, beta = ctx.kernel.backward(ctx.kept, grad, needs_x, needs_weight)
        return x, weight, bias if needs_bias else None, gamma, beta, None, None, None, None

    @staticmethod
    def jvp(ctx: Any, x: Tensor | None, *tangents: Any) -> Tensor:
        """The derivative along the tangents of input and parameters."""
        (gamma,) = ctx.saved_tensors
        out: Tensor = ctx.kernel.tangent(ctx.kept, gamma, x, list(tangents[:4]))
        return out
