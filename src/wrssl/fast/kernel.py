"""The arithmetic of one block: convolution, batch norm with given, batch or weighted statistics, ReLU, max-pooling.

With s = sign(γ) folded into the kernel, the normalisation x ↦ |γ|/ς · x + β increases, so it and the ReLU commute with
the maximum and are applied to a quarter of the numbers:

    Z = W̃ A − μ,   σ² = Σ ω Z²,   P = max of the four planes of Z,   y = relu(|γ|/ς · P + β),   ς = √(σ² + ε)

ω_i = share_i / S is what one of the S values of a channel of example i counts, 1/(NS) without weights. The mean comes
from that of A, μ = W̃ (A ω), before Z is there: subtracting it within the product leaves no difference of large squares.

Backward, with g = dL/dy where y > 0, G1 = Σ g and G2 = Σ g P/ς over the channel, and g placed where the maximum was:

    dL/dβ = G1,   dL/dγ = s G2,   dL/dZ = |γ|/ς (g − ω (G1 + G2 Z/ς)),   dL/dW̃ = dL/dZ Aᵀ,   dL/dA = W̃ᵀ dL/dZ

The part ω G1, the same for all channels up to a factor, is left out of dL/dZ and put into the two products, as a row ω
below dL/dZ and as the known mean of A.

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

_masked = torch.ops.aten.threshold_backward.grad_input  # (g, x, 0): g where x > 0, else 0, without a mask in memory


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
    mean_a: Tensor | None  # of each row of A; None for constant statistics
    wide: Wide
    z: Tensor
    weighted_z: Tensor  # ω N S z, or z itself without weights
    halves: Tensor
    top: Tensor
    y: Tensor
    norm: Tensor  # √(Σ ω N S z²) per channel
    inverse: Tensor
    scale: Tensor
    share: Tensor | None  # as in ``Statistics``
    n: int

    @property
    def constant(self) -> bool:
        """Whether the statistics do not depend on the batch."""
        return self.mean_a is None


@dataclass(frozen=True)
class Kernel:
    """A block of a fixed size; ``buffers`` may be shared by all calls."""

    geometry: Geometry
    eps: float
    buffers: Buffers
    constants: dict[torch.dtype, _Constants] = field(default_factory=dict)

    def of(self, x: Tensor) -> _Constants:
        """Tensors that never change, in the type of ``x``."""
        if x.dtype not in self.constants:
            self.constants[x.dtype] = _Constants.make(self.geometry, self.eps, x)
        return self.constants[x.dtype]

    def widen(self, weight: Tensor, gamma: Tensor) -> Wide:
        """The parameters as the passes use them."""
        q = self.geometry.out_channels
        sign = torch.where(gamma < 0, -1.0, 1.0).to(weight.dtype)
        wide = self.geometry.expand(weight * sign.view(-1, 1, 1, 1))
        planes = wide.view(4, q, -1)
        return Wide(wide, wide[:, :-1], planes[..., -1], planes[..., :-1].mean(0), sign, gamma.abs())

    def forward(self, x: Tensor, p: Parameters, wide: Wide, statistics: Statistics) -> tuple[Tensor, Kept]:
        """The result, and what derivatives need."""
        g, lease, n, share = self.geometry, self.buffers.lease(), x.shape[0], statistics.share
        a, image = g.gather(x, lease)
        q, m = g.out_channels, a.shape[1]
        rows, mean_a = image.view(-1, n), None
        if statistics.running is None:
            pixels = rows.mean(1) if share is None else torch.mv(rows, share)
            mean_a = torch.mv(self.of(x).box, pixels)
            mean = torch.mv(wide.average, mean_a)
        else:
            known = statistics.running[0]
            mean = wide.sign * (known if p.bias is None else known - p.bias)
        torch.neg(mean.expand(4, q), out=wide.last)  # times the ones in A: the product comes out centred
        z = weighted_z = torch.mm(wide.weight, a, out=lease.take(x, 4 * q, m))
        if share is not None:
            weighted_z = torch.mul(z.view(-1, n), share * n, out=lease.take(x, 4 * q * m // n, n)).view_as(z)
        norm, inverse = self._deviation(z, weighted_z, statistics)
        scale = wide.size * inverse
        halves = torch.maximum(z[: 2 * q], z[2 * q :], out=lease.take(x, 2 * q, m))
        top = torch.maximum(halves[:q], halves[q:], out=lease.take(x, q, m))
        y = self._affine(top, scale, p.beta)
        kept = Kept(lease, a, mean_a, wide, z, weighted_z, halves, top, y, norm, inverse, scale, share, n)
        return y.view(q, *g.pooled, n).permute(3, 0, 1, 2), kept

    def moments(self, k: Kept, p: Parameters) -> tuple[Tensor, Tensor]:
        """Mean and variance of the batch that normalised, for the running ones."""
        assert k.mean_a is not None
        mean = torch.mv(k.wide.average, k.mean_a).mul_(k.wide.sign)
        return mean if p.bias is None else mean + p.bias, k.norm.square() / k.z[:4].numel()

    def backward(
        self, k: Kept, grad: Tensor, needs_x: bool, needs_weight: bool
    ) -> tuple[Tensor | None, Tensor | None, Tensor | None, Tensor, Tensor]:
        """dL/dx, and of kernel, bias, γ and β."""
        g, work, sign = self.geometry, self.buffers.lease(), k.wide.sign
        q, m = k.top.shape
        # dL/dZ and a row for ω G1, which stays one without weights
        below = work.take(grad, 4 * q + 1, m, filled=1 if k.share is None else None)
        dz = below[:-1]
        g1, g2 = self._place(k, grad.permute(1, 2, 3, 0).reshape(q, m), dz, work)
        level, d_bias = k.scale * g1, None
        if k.constant:
            d_bias = sign * level  # elsewhere the statistics take a common shift away
        else:
            slope = k.scale * g2 * k.inverse
            slope, level = torch.stack([slope, level]).div_(4 * m).unsqueeze(1).expand(2, 4, q).reshape(2, 4 * q, 1)
            dz.addcmul_(k.weighted_z, slope, value=-1)
            if k.share is not None:
                below[-1].view(-1, k.n).copy_(k.share * k.n)
        d_weight = d_x = None
        if needs_weight:
            d_wide = grad.new_empty(4 * q, k.a.shape[0])  # as wide as W̃; nobody reads the last column
            torch.mm(dz, k.a[:-1].t(), out=d_wide[:, :-1])
            if k.mean_a is not None:
                d_wide[:, :-1].addr_(level.view(-1), k.mean_a, alpha=-m)
            d_weight = g.fold(d_wide) * sign.view(-1, 1, 1, 1)
        if needs_x:
            narrow = k.wide.narrow.t()
            d_a = work.take(grad, narrow.shape[0], m)
            if k.constant:
                torch.mm(narrow, dz, out=d_a)
            else:
                torch.mm(torch.cat([narrow, -(narrow @ level)], 1), below, out=d_a)
            d_x = g.scatter(d_a, k.n)
        return d_x, d_weight, d_bias, sign * g2, g1

    def _place(self, k: Kept, grad: Tensor, dz: Tensor, work: Lease) -> tuple[Tensor, Tensor]:
        """|γ|/ς · g into the plane of the maximum; returns G1 and G2."""
        q, m = k.top.shape
        placed, spare = work.take(grad, 2 * q, m), work.take(grad, 2 * q, m)
        upper, lower, small = placed[:q], placed[q:], spare[:q]
        _masked(grad, k.y, 0, grad_input=upper)
        g1 = upper.sum(1)
        g2 = torch.mul(upper, k.top, out=small).sum(1) * k.inverse
        upper.mul_(k.scale.unsqueeze(1))
        # To the second row where that is strictly larger, else to the first, and likewise to one of two columns.
        _masked(upper, torch.sub(k.halves[q:], k.halves[:q], out=small), 0, grad_input=lower)
        upper.sub_(lower)
        left, right = dz[: 2 * q], dz[2 * q :]
        _masked(placed, torch.sub(k.z[2 * q :], k.z[: 2 * q], out=spare), 0, grad_input=right)
        torch.sub(placed, right, out=left)
        return g1, g2

    def tangent(self, k: Kept, gamma: Tensor, x: Tensor | None, p: list[Tensor | None]) -> Tensor:
        """ẏ from the tangents of the input and of kernel, bias, γ and β; None stands for zero."""
        g, work = self.geometry, self.buffers.lease()
        weight, bias, d_gamma, beta = p
        q, m = k.top.shape
        dz = work.take(k.z, 4 * q, m).zero_()
        if weight is not None:
            torch.mm(g.expand(weight * k.wide.sign.view(-1, 1, 1, 1))[:, :-1], k.a[:-1], out=dz)
        if x is not None:
            dz.addmm_(k.wide.narrow, g.gather(x, work)[0][:-1])
        if bias is not None:
            dz.add_(self._tiled(k.wide.sign * bias))
        d_scale = torch.zeros_like(k.scale)
        if not k.constant:
            dz.sub_(self._tiled(self._over_batch(dz, k.share)))
            product = torch.mul(k.weighted_z, dz, out=work.take(k.z, 4 * q, m))
            d_scale = -k.scale * k.inverse.square() * self._over_batch(product, None)
        if d_gamma is not None:
            d_scale = d_scale + torch.where(gamma < 0, -d_gamma, d_gamma) * k.inverse
        top = self._follow(k.halves, self._follow(k.z, dz, work), work)
        top.mul_(k.scale.unsqueeze(1)).addcmul_(k.top, d_scale.unsqueeze(1))
        if beta is not None:
            top.add_(beta.unsqueeze(1))
        out = _masked(top, k.y, 0, grad_input=torch.empty_like(k.y))
        return out.view(*g.result, k.n).permute(-1, *range(len(g.result)))

    @staticmethod
    def _follow(values: Tensor, tangents: Tensor, work: Lease) -> Tensor:
        """The tangent of ``maximum(first half, second half)``."""
        half = len(values) // 2
        first, second = tangents[:half], tangents[half:]
        ahead = torch.sub(values[half:], values[:half], out=work.take(values, half, values.shape[1]))
        gain = torch.sub(second, first, out=work.take(values, half, values.shape[1]))
        return _masked(gain, ahead, 0, grad_input=gain).add_(first)

    def _deviation(self, z: Tensor, weighted_z: Tensor, statistics: Statistics) -> tuple[Tensor, Tensor]:
        """√(Σ ω N S z²) and 1/ς per channel."""
        eps = self.of(z).eps
        if statistics.running is not None:
            return eps, torch.rsqrt(statistics.running[1] + eps)
        if statistics.share is None:
            rows = torch.linalg.vector_norm(z, dim=1)
        else:
            work = self.buffers.lease()
            rows = torch.mul(z, weighted_z, out=work.take(z, *z.shape)).sum(1).sqrt_()
        norm = torch.linalg.vector_norm(rows.view(4, -1), dim=0)
        return norm, torch.addcmul(eps, norm, norm, value=1 / (4 * z.shape[1])).rsqrt_()

    def _affine(self, x: Tensor, slope: Tensor, level: Tensor) -> Tensor:
        """``relu(slope · x + level)`` with two numbers per channel, for x (C, M).

        Batch norm with nothing to normalise: torch has no other kernel that does this in one vectorised pass.
        """
        c = self.of(x)
        moved = torch.native_batch_norm(x.unsqueeze(0), slope, level, c.zeros, c.ones, False, 0.0, 0.0)
        return moved[0].squeeze(0).relu_()

    def _over_batch(self, rows: Tensor, share: Tensor | None) -> Tensor:
        """The mean of each channel, every example counted with its share."""
        if share is None:
            means = rows.mean(1)
        else:
            means = torch.mv(rows.view(-1, len(share)), share).view(len(rows), -1).mean(1)
        return means.view(4, -1).mean(0)

    @staticmethod
    def _tiled(channels: Tensor) -> Tensor:
        """One number per row of all planes, as a column."""
        return channels.expand(4, -1).reshape(-1, 1)


class _Constants(NamedTuple):
    """Tensors of one block in one type."""

    box: Tensor
    zeros: Tensor
    ones: Tensor
    eps: Tensor

    @classmethod
    def make(cls, geometry: Geometry, eps: float, like: Tensor) -> _Constants:
        channels = like.new_zeros(geometry.out_channels)
        return cls(geometry.box.to(like.dtype), channels, channels + 1, channels + eps)
