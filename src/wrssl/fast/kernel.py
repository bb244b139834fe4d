"""The arithmetic of one block: convolution, batch norm with given, batch or weighted statistics, ReLU, max-pooling.

With s = sign(γ) folded into the kernel, the normalization x ↦ |γ|/ς · x + β increases, so it and the ReLU commute with
the maximum and are applied to a quarter of the numbers:

    Z = W̃ A − μ,   σ² = Σ ω Z²,   P = max of the four planes of Z,   y = relu(|γ|/ς · P + β),   ς = √(σ² + ε)

ω_i = share_i / S is what one of the S values of a channel of example i counts, 1/(NS) without weights. The mean comes
from that of A, μ = W̃ (A ω), before W̃ A is computed, so that the variance is no difference of large squares; μ is
subtracted wherever W̃ A is read.

Backward, with g = dL/dy where y > 0, G1 = Σ g and G2 = Σ g P/ς over the channel, and g placed where the maximum was:

    dL/dβ = G1,   dL/dγ = s G2,   dL/dZ = |γ|/ς (g − ω (G1 + G2 Z/ς)),   dL/dW̃ = dL/dZ Aᵀ,   dL/dA = W̃ᵀ dL/dZ

Forward mode, a dot for derivatives along the tangents:

    Ż = W̃̇ A + W̃ Ȧ − mean,   (σ²)˙ = 2 Σ ω Z Ż,   ẏ = [y > 0] (|γ|/ς Ṗ + (|γ|/ς)˙ P + β̇)

Constant statistics (running ones) have ω = 0 in all derivatives, and the bias of the convolution, which batch
statistics cancel, shifts Z.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from wrssl.fast import loops
from wrssl.fast.geometry import Buffers, Geometry, Lease


class Statistics(NamedTuple):
    """Which mean and variance normalize the batch: those of the batch, weighted or not, or given ones.

    Args:
        share: what each example counts, (N,), sum one; None where all count alike.
        running: a given mean and variance; None takes those of the batch.
    """

    share: Tensor | None = None
    running: tuple[Tensor, Tensor] | None = None


class Parameters(NamedTuple):
    """The learned tensors of a block: kernel and bias of the convolution, γ and β of the batch norm."""

    weight: Tensor
    bias: Tensor | None
    gamma: Tensor
    beta: Tensor


class Wide(NamedTuple):
    """The parameters of a block as its passes use them; the same for all passes between two changes of them.

    Args:
        weight: W̃ with the sign of γ in it.
        average: the mean of its four planes.
        sign: of γ.
        size: of γ.
    """

    weight: Tensor
    average: Tensor
    sign: Tensor
    size: Tensor


@dataclass
class Kept:
    """What one forward pass leaves for the derivatives; the large tensors live in the lease."""

    lease: Lease
    a: Tensor
    wide: Wide
    z: Tensor
    top: Tensor
    y: Tensor
    mean: Tensor
    variance: Tensor
    inverse: Tensor
    weight: Tensor  # ω N S of each example: 1 without weights, 0 for constant statistics
    constant: bool
    n: int


@dataclass(frozen=True)
class Kernel:
    """A block of a fixed size; ``buffers`` may be shared by all calls."""

    geometry: Geometry
    eps: float
    buffers: Buffers
    constants: dict[tuple[torch.dtype, int], _Constants] = field(default_factory=dict)

    def of(self, x: Tensor, n: int) -> _Constants:
        """Constant tensors in the type of ``x`` and for ``n`` examples."""
        key = (x.dtype, n)
        if key not in self.constants:
            self.constants[key] = _Constants(x.new_zeros(n), x.new_ones(n))
        return self.constants[key]

    def widen(self, weight: Tensor, gamma: Tensor) -> Wide:
        """The parameters as the passes use them."""
        q = self.geometry.out_channels
        sign = torch.where(gamma < 0, -1.0, 1.0).to(weight.dtype)
        wide = self.geometry.expand(weight * sign.view(-1, 1, 1, 1))
        return Wide(wide, wide.view(4, q, -1).mean(0), sign, gamma.abs())

    def forward(self, x: Tensor, p: Parameters, wide: Wide, statistics: Statistics) -> tuple[Tensor, Kept]:
        """The result, and what derivatives need."""
        g, lease, n, (share, running) = self.geometry, self.buffers.lease(), x.shape[0], statistics
        constants = self.of(x, n)
        image = g.image(x, lease)
        q, (down, right) = g.out_channels, g.pooled
        a = lease.take(x, *g.line, n)
        weight = constants.ones if share is None else share * n
        mean = loops.gather(g, image, weight, a, wide.average)
        if running is not None:
            mean = wide.sign * (running[0] if p.bias is None else running[0] - p.bias)
        z = torch.bmm(wide.weight.expand(down, -1, -1), g.windows(a), out=lease.take(x, down, 4 * q, right * n))
        top = lease.take(x, q, down * right * n)
        given = None if running is None else running[1]
        y, variance, inverse = loops.normalize_pool(z, mean, weight, wide.size, p.beta, self.eps, given, top)
        weight = weight if running is None else constants.zeros
        kept = Kept(lease, a, wide, z, top, y, mean, variance, inverse, weight, running is not None, n)
        return y.view(q, *g.pooled, n).permute(3, 0, 1, 2), kept

    def moments(self, k: Kept, p: Parameters) -> tuple[Tensor, Tensor]:
        """Mean and variance of the batch that normalized, for the running ones."""
        mean = k.mean * k.wide.sign
        return mean if p.bias is None else mean + p.bias, k.variance

    def backward(
        self, k: Kept, grad: Tensor, needs_x: bool, needs_weight: bool
    ) -> tuple[Tensor | None, Tensor | None, Tensor | None, Tensor, Tensor]:
        """dL/dx, and of kernel, bias, γ and β."""
        g, work, sign = self.geometry, self.buffers.lease(), k.wide.sign
        dz = work.take(grad, *k.z.shape)
        grad = grad.permute(1, 2, 3, 0).reshape(k.top.shape)
        g1, g2 = loops.normalize_pool_backward(grad, k.y, k.z, k.mean, k.top, k.weight, k.wide.size, k.inverse, dz)
        d_weight = d_x = None
        if needs_weight:
            d_wide = torch.bmm(dz, g.windows(k.a).transpose(1, 2)).sum(0)
            d_weight = g.fold(d_wide) * sign.view(-1, 1, 1, 1)
        if needs_x:
            back = k.wide.weight.t().expand(len(dz), -1, -1)
            d_a = torch.bmm(back, dz, out=work.take(grad, len(dz), g.inputs, dz.shape[2]))
            d_x = g.crop(loops.scatter(g, d_a, k.n))
        # Statistics of the batch remove a common shift, so that the bias has no gradient there.
        d_bias = sign * k.wide.size * k.inverse * g1 if k.constant else None
        return d_x, d_weight, d_bias, sign * g2, g1

    def tangent(self, k: Kept, gamma: Tensor, x: Tensor | None, p: list[Tensor | None]) -> Tensor:
        """ẏ from the tangents of the input and of kernel, bias, γ and β; None stands for zero."""
        g, work = self.geometry, self.buffers.lease()
        weight, bias, d_gamma, beta = p
        q, m = k.top.shape
        dz = work.take(k.z, *k.z.shape).zero_()
        if weight is not None:
            wide = g.expand(weight * k.wide.sign.view(-1, 1, 1, 1))
            dz.baddbmm_(wide.expand(len(dz), -1, -1), g.windows(k.a))
        if x is not None:
            a = work.take(k.z, *g.line, k.n)
            loops.gather(g, g.image(x, work), k.weight, a, k.wide.average[:0])
            dz.baddbmm_(k.wide.weight.expand(len(dz), -1, -1), g.windows(a))
        if bias is not None:
            dz.add_((k.wide.sign * bias).repeat(4).unsqueeze(1))
        scale = k.wide.size * k.inverse
        shift = d_scale = level = torch.zeros_like(scale)
        if not k.constant:
            shift, product = loops.tangent_sums(k.z, k.mean, dz, k.weight)
            shift.div_(4 * m)  # Σ ω z = 0, so that the shift does not change Σ ω z ż
            d_scale = product.div_(-4 * m).mul_(scale * k.inverse.square())
        if d_gamma is not None:
            d_scale = d_scale + torch.where(gamma < 0, -d_gamma, d_gamma) * k.inverse
        level = level if beta is None else beta
        out: Tensor = loops.normalize_pool_tangent(k.z, dz, shift, scale, d_scale, level, k.top, k.y)
        return out.view(q, *g.pooled, k.n).permute(3, 0, 1, 2)


class _Constants(NamedTuple):
    """Tensors for one type and one number of examples."""

    zeros: Tensor
    ones: Tensor


class ConvNormPool(torch.autograd.Function):
    """``relu(batch_norm(conv(x)))`` pooled 2 x 2; puts mean and variance of the batch into the list ``moments``.

    Its gradients cannot be differentiated again; second derivatives need the layers themselves.
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
        ctx.save_for_backward(y)  # not for its values: autograd then refuses a backward pass if y was overwritten
        ctx.save_for_forward(gamma)
        if moments is not None:
            moments.extend(kernel.moments(kept, parameters))
        return y

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        """The gradients of input and parameters; None for a parameter that did not require one in the forward pass."""
        ctx.saved_tensors  # noqa: B018
        needed = ctx.needs_input_grad[:5]
        gradients = ctx.kernel.backward(ctx.kept, grad, *needed[:2])
        return *(g if need else None for g, need in zip(gradients, needed, strict=True)), None, None, None, None

    @staticmethod
    def jvp(ctx: Any, x: Tensor | None, *tangents: Any) -> Tensor:
        """The derivative along the tangents of input and parameters."""
        (gamma,) = ctx.saved_tensors
        out: Tensor = ctx.kernel.tangent(ctx.kept, gamma, x, list(tangents[:4]))
        return out
