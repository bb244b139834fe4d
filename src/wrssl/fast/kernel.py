"""The arithmetic of one block: convolution, batch norm with given, batch or weighted statistics, ReLU, max-pooling.

With s = sign(γ) folded into the kernel, the normalisation x ↦ |γ|/ς · x + β increases, so it and the ReLU commute with
the maximum and are applied to a quarter of the numbers:

    Z = W̃ A − μ,   σ² = Σ ω Z²,   P = max of the four planes of Z,   y = relu(|γ|/ς · P + β),   ς = √(σ² + ε)

ω_i = share_i / S is what one of the S values of a channel of example i counts, 1/(NS) without weights. The mean comes
from that of A, μ = W̃ (A ω), before Z is there: subtracting it within the product leaves no difference of large squares.

Backward, with g = dL/dy where y > 0, G1 = Σ g and G2 = Σ g P/ς over the channel, and g placed where the maximum was:

    dL/dβ = G1,   dL/dγ = s G2,   dL/dZ = |γ|/ς (g − ω (G1 + G2 Z/ς)),   dL/dW̃ = dL/dZ Aᵀ,   dL/dA = W̃ᵀ dL/dZ

Forward mode, a dot for derivatives along the tangents:

    Ż = W̃̇ A + W̃ Ȧ − mean,   (σ²)˙ = 2 Σ ω Z Ż,   ẏ = [y > 0] (|γ|/ς Ṗ + (|γ|/ς)˙ P + β̇)

Constant statistics (running ones) have ω = 0 in all derivatives, and the bias of the convolution, which batch
statistics cancel, moves Z.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

import torch
from torch import Tensor

from wrssl.fast.buffers import Buffers, Lease
from wrssl.fast.geometry import Geometry
from wrssl.fast.loops import loops


class Statistics(NamedTuple):
    """Which mean and variance normalise the batch: those of the batch, weighted or not, or given ones.

    Args:
        share: what each example counts, (N,), sum one; None counts all alike.
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
    """What a block needs of its parameters, made once for all passes between two changes of them.

    Args:
        weight: W̃ with the sign of γ in it.
        narrow: the same without its last column.
        last: its last column as (4, C_out), where a bias goes.
        average: the mean of its four planes.
        sign: of γ.
        size: of γ.
    """

    weight: Tensor
    narrow: Tensor
    last: Tensor
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
    scale: Tensor
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
        """Tensors that never change, in the type of ``x`` and for ``n`` examples."""
        key = (x.dtype, n)
        if key not in self.constants:
            self.constants[key] = _Constants(x.new_zeros(n), x.new_ones(n))
        return self.constants[key]

    def widen(self, weight: Tensor, gamma: Tensor) -> Wide:
        """The parameters as the passes use them."""
        q = self.geometry.out_channels
        sign = torch.where(gamma < 0, -1.0, 1.0).to(weight.dtype)
        wide = self.geometry.expand(weight * sign.view(-1, 1, 1, 1))
        planes = wide.view(4, q, -1)
        return Wide(wide, wide[:, :-1], planes[..., -1], planes[..., :-1].mean(0), sign, gamma.abs())

    def forward(self, x: Tensor, p: Parameters, wide: Wide, statistics: Statistics) -> tuple[Tensor, Kept]:
        """The result, and what derivatives need."""
        g, lease, n, (share, running) = self.geometry, self.buffers.lease(), x.shape[0], statistics
        constants = self.of(x, n)
        image = g.image(x, lease)
        q, m = g.out_channels, g.positions // 4 * n
        a = lease.take(x, g.inputs + 1, m, filled=1)
        weight = constants.ones if share is None else share * n
        mean = torch.mv(wide.average, loops().gather(g, image, weight, a))
        if running is not None:
            mean = wide.sign * (running[0] if p.bias is None else running[0] - p.bias)
        torch.neg(mean.expand(4, q), out=wide.last)  # times the ones in A: the product comes out centred
        z = torch.mm(wide.weight, a, out=lease.take(x, 4 * q, m))
        top = lease.take(x, q, m)
        variance = loops().peak(z, weight, top).div_(4 * m)
        if running is not None:
            variance, weight = running[1], constants.zeros
        inverse = (variance + self.eps).rsqrt_()
        scale = wide.size * inverse
        y = loops().rectified(top, scale, p.beta)
        kept = Kept(lease, a, wide, z, top, y, mean, variance, inverse, scale, weight, running is not None, n)
        return y.view(q, *g.pooled, n).permute(3, 0, 1, 2), kept

    def moments(self, k: Kept, p: Parameters) -> tuple[Tensor, Tensor]:
        """Mean and variance of the batch that normalised, for the running ones."""
        mean = k.mean * k.wide.sign
        return mean if p.bias is None else mean + p.bias, k.variance

    def backward(
        self, k: Kept, grad: Tensor, needs_x: bool, needs_weight: bool
    ) -> tuple[Tensor | None, Tensor | None, Tensor | None, Tensor, Tensor]:
        """dL/dx, and of kernel, bias, γ and β."""
        g, work, sign = self.geometry, self.buffers.lease(), k.wide.sign
        q, m = k.top.shape
        dz = work.take(grad, 4 * q, m)
        grad = grad.permute(1, 2, 3, 0).reshape(q, m)
        g1, g2 = loops().sums(grad, k.y, k.top)
        g2.mul_(k.inverse)
        level = k.scale * g1
        slope = (k.scale * k.inverse).mul_(g2).div_(4 * m)
        loops().placed(grad, k.y, k.z, k.weight, k.scale, slope, level / (4 * m), dz)
        d_weight = d_x = None
        if needs_weight:
            d_wide = grad.new_empty(4 * q, g.inputs + 1)  # as wide as W̃; nobody reads the last column
            torch.mm(dz, k.a[:-1].t(), out=d_wide[:, :-1])
            d_weight = g.fold(d_wide) * sign.view(-1, 1, 1, 1)
        if needs_x:
            d_a = torch.mm(k.wide.narrow.t(), dz, out=work.take(grad, g.inputs, m))
            d_x = g.crop(loops().scatter(g, d_a, k.n))
        # Statistics of the batch take a common shift away, so that the bias has no gradient there.
        return d_x, d_weight, sign * level if k.constant else None, sign * g2, g1

    def tangent(self, k: Kept, gamma: Tensor, x: Tensor | None, p: list[Tensor | None]) -> Tensor:
        """ẏ from the tangents of the input and of kernel, bias, γ and β; None stands for zero."""
        g, work = self.geometry, self.buffers.lease()
        weight, bias, d_gamma, beta = p
        q, m = k.top.shape
        dz = work.take(k.z, 4 * q, m).zero_()
        if weight is not None:
            torch.mm(g.expand(weight * k.wide.sign.view(-1, 1, 1, 1)), k.a, out=dz)
        if x is not None:
            a = work.take(k.z, g.inputs + 1, m, filled=1)
            loops().gather(g, g.image(x, work), k.weight, a)
            dz.addmm_(k.wide.narrow, a[:-1])
        if bias is not None:
            dz.add_((k.wide.sign * bias).repeat(4).unsqueeze(1))
        shift = d_scale = level = torch.zeros_like(k.scale)
        if not k.constant:
            shift, product = loops().slopes(k.z, dz, k.weight)
            shift.div_(4 * m)  # Σ ω z = 0, so that the shift has no part in Σ ω z ż
            d_scale = product.div_(-4 * m).mul_(k.scale * k.inverse.square())
        if d_gamma is not None:
            d_scale = d_scale + torch.where(gamma < 0, -d_gamma, d_gamma) * k.inverse
        level = level if beta is None else beta
        out: Tensor = loops().followed(k.z, dz, shift, k.scale, d_scale, level, k.top, k.y)
        return out.view(q, *g.pooled, k.n).permute(3, 0, 1, 2)


class _Constants(NamedTuple):
    """Tensors for one type and one number of examples."""

    zeros: Tensor
    ones: Tensor
