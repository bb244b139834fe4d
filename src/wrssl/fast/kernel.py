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

from dataclasses import dataclass
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


@dataclass
class Kept:
    """What one forward pass leaves for the derivatives; the large tensors live in the lease."""

    lease: Lease
    a: Tensor
    mean_a: Tensor | None  # Σ ω a / Σ ω, where statistics of the batch count
    wide: Tensor
    sign: Tensor
    z: Tensor
    weighted_z: Tensor  # ω N S z, or z itself without weights
    halves: Tensor
    top: Tensor
    y: Tensor
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

    def widen(self, weight: Tensor, gamma: Tensor) -> tuple[Tensor, Tensor]:
        """W̃ with the sign of γ in it, and that sign."""
        sign = torch.where(gamma < 0, -1.0, 1.0).to(weight.dtype)
        return self.geometry.expand(weight * sign.view(-1, 1, 1, 1)), sign

    def forward(
        self, x: Tensor, p: Parameters, wide: tuple[Tensor, Tensor], statistics: Statistics
    ) -> tuple[Tensor, Tensor, Tensor, Kept]:
        """The result, the mean and variance that normalised, and what derivatives need."""
        g, lease, n, (w, sign) = self.geometry, self.buffers.lease(), len(x), wide
        q, share = g.out_channels, statistics.share
        a, image = g.gather(x, lease)
        m = a.shape[1]
        mean, mean_a = self._mean(image, w, p.bias, sign, statistics)
        w[:, -1:] = self._tiled(-mean)  # times the ones in A: the product comes out centred
        z = weighted_z = torch.mm(w, a, out=lease.take(x, 4 * q, m))
        if share is not None:
            weighted_z = torch.mul(z.view(-1, n), share * n, out=lease.take(x, 4 * q * m // n, n)).view_as(z)
        variance = self._variance(z, weighted_z, statistics)
        inverse = torch.rsqrt(variance + self.eps)
        scale = p.gamma.abs() * inverse
        halves = torch.maximum(z[: 2 * q], z[2 * q :], out=lease.take(x, 2 * q, m))
        top = torch.maximum(halves[:q], halves[q:], out=lease.take(x, q, m))
        # y is the same memory without being a view of the result: a view would hold its base, and with that the graph
        # that holds the view, for ever.
        result = torch.empty_strided((n, *g.result), _innermost(g.result, n), dtype=x.dtype)
        y = x.new_empty(0).set_(result.untyped_storage(), 0, (q, m), (m, 1))  # type: ignore[call-overload]
        _affine(top, scale, p.beta, y)
        y.relu_()
        kept = Kept(lease, a, mean_a, w, sign, z, weighted_z, halves, top, y, inverse, scale, share, n)
        actual = sign * mean if p.bias is None else torch.addcmul(p.bias, sign, mean)
        return result, actual, variance, kept

    def backward(
        self, k: Kept, grad: Tensor, needs_x: bool, needs_weight: bool
    ) -> tuple[Tensor | None, Tensor | None, Tensor, Tensor, Tensor]:
        """dL/dx, and of kernel, bias, γ and β."""
        g, work = self.geometry, self.buffers.lease()
        q, m = k.top.shape
        below = work.take(grad, 4 * q + 1, m)  # dL/dZ and a row for ω G1
        dz = below[:-1]
        g1, g2 = self._place(k, grad.permute(*range(1, grad.dim()), 0).reshape(q, m), dz, work)
        level, free = k.scale * g1, k.scale * g1
        if not k.constant:
            dz.addcmul_(k.weighted_z, self._tiled(k.scale * g2 * k.inverse / (4 * m)), value=-1)
            level = self._tiled(level / (4 * m))
            free = torch.zeros_like(free)  # the statistics take a common shift away
            below[-1].fill_(1)
            if k.share is not None:
                below[-1].view(-1, k.n).copy_(k.share * k.n)
        d_weight = d_x = None
        if needs_weight:
            d_wide = torch.mm(dz, k.a[:-1].t())
            if k.mean_a is not None:
                d_wide.addr_(level.view(-1), k.mean_a, alpha=-m)
            d_weight = g.fold(d_wide) * k.sign.view(-1, 1, 1, 1)
        if needs_x:
            narrow = k.wide[:, :-1].t()
            d_a = work.take(grad, len(narrow), m)
            if k.constant:
                torch.mm(narrow, dz, out=d_a)
            else:
                torch.mm(torch.cat([narrow, -(narrow @ level)], 1), below, out=d_a)
            d_x = g.scatter(d_a, k.n)
        return d_x, d_weight, k.sign * free, k.sign * g2, g1

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
            torch.mm(g.expand(weight * k.sign.view(-1, 1, 1, 1))[:, :-1], k.a[:-1], out=dz)
        if x is not None:
            dz.addmm_(k.wide[:, :-1], g.gather(x, work)[0][:-1])
        if bias is not None:
            dz.add_(self._tiled(k.sign * bias))
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

    def _mean(
        self, image: Tensor, w: Tensor, bias: Tensor | None, sign: Tensor, statistics: Statistics
    ) -> tuple[Tensor, Tensor | None]:
        """The mean of each channel of W̃ A and the mean of A that it comes from, read off the images."""
        share, running = statistics
        if running is not None:
            return sign * (running[0] if bias is None else running[0] - bias), None
        rows = image.view(-1, image.shape[-1])
        per_pixel = rows.mean(1) if share is None else torch.mv(rows, share)
        mean_a = self.geometry.average(per_pixel.view(image.shape[:-1]))
        mean = torch.mv(w[:, :-1], mean_a).view(4, -1).mean(0)
        return mean, mean_a

    def _variance(self, z: Tensor, weighted_z: Tensor, statistics: Statistics) -> Tensor:
        if statistics.running is not None:
            return statistics.running[1]
        if statistics.share is None:
            squares = torch.linalg.vector_norm(z, dim=1).square()
        else:
            work = self.buffers.lease()
            squares = torch.mul(z, weighted_z, out=work.take(z, *z.shape)).sum(1)
        return squares.view(4, -1).mean(0) / z.shape[1]

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


def _innermost(shape: tuple[int, ...], n: int) -> tuple[int, ...]:
    """The strides of (N, …) that lies in memory with N last."""
    strides, size = list[int](), n
    for extent in reversed(shape):
        strides.insert(0, size)
        size *= extent
    return 1, *strides


def _affine(x: Tensor, slope: Tensor, level: Tensor, out: Tensor) -> Tensor:
    """``slope`` · x + ``level`` with two numbers per channel, for x (C, M), into ``out``.

    Batch norm with nothing to normalise: torch has no other kernel that does this in one vectorised pass.
    """
    nothing, zeros, ones = x.new_empty(0), torch.zeros_like(slope), torch.ones_like(slope)
    into = out.unsqueeze(0), nothing, nothing
    torch.native_batch_norm(x.unsqueeze(0), slope, level, zeros, ones, False, 0.0, 0.0, out=into)
    return out
