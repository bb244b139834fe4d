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

from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

from wrssl.fast.buffers import Buffers, Lease
from wrssl.fast.geometry import Geometry

_masked = torch.ops.aten.threshold_backward.grad_input  # (g, x, 0): g where x > 0, else 0, without a mask in memory


class Statistics(NamedTuple):
    """Which mean and variance normalise the batch.

    Args:
        share: what each example counts, (N,), sum one; None counts all alike.
        usable: whether the shares make a statistic, a tensor without dimensions; None where that is certain.
        running: mean and variance for the case that they do not.
        constant: take ``running`` whatever the batch is.
    """

    share: Tensor | None
    usable: Tensor | None
    running: tuple[Tensor, Tensor] | None
    constant: bool = False


class Parameters(NamedTuple):
    """The learned tensors of a block: kernel and bias of the convolution, γ and β of the batch norm."""

    weight: Tensor
    bias: Tensor | None
    gamma: Tensor
    beta: Tensor


@dataclass
class Kept:
    """What one forward pass leaves for the derivatives; the tensors live in the lease."""

    lease: Lease
    a: Tensor
    wide: Tensor
    sign: Tensor
    z: Tensor
    halves: Tensor
    top: Tensor
    y: Tensor
    inverse: Tensor
    scale: Tensor
    omega: Tensor | float  # per example, or one number for all; 0 for constant statistics


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
        """The result (N, C_out, H/2, W/2), the mean and variance that normalised, and what derivatives need."""
        g, lease, work = self.geometry, self.buffers.lease(), self.buffers.lease()
        n, (w, sign), share = len(x), wide, statistics.share
        a = g.gather(x, lease)
        m, q = a.shape[1], g.out_channels
        bias = torch.zeros_like(p.gamma) if p.bias is None else p.bias
        mean, variance = sign, sign  # replaced below
        if not statistics.constant:
            mean = self._average(torch.mv(w[:, :-1], self._mean(a[:-1], share)))
        if statistics.running is not None:
            kept_mean, kept_variance = statistics.running
            kept_mean = sign * (kept_mean - bias)
            mean = kept_mean if statistics.constant else torch.where(statistics.usable, mean, kept_mean)
        w[:, -1:] = self._tiled(-mean, 4)  # times the ones in A: the product comes out centred
        z = torch.mm(w, a, out=lease.take(x, 4 * q, m))
        if share is not None:
            variance = self._average(self._mean(torch.mul(z, z, out=work.take(x, 4 * q, m)), share))
        elif not statistics.constant:
            variance = self._average(torch.linalg.vector_norm(z, dim=1).square() / m)
        if statistics.running is not None:
            known = statistics.running[1]
            variance = known if statistics.constant else torch.where(statistics.usable, variance, known)
        inverse = torch.rsqrt(variance + self.eps)
        scale = p.gamma.abs() * inverse
        halves = torch.maximum(z[: 2 * q], z[2 * q :], out=lease.take(x, 2 * q, m))
        top = torch.maximum(halves[:q], halves[q:], out=lease.take(x, q, m))
        # y is the same memory without being a view of the result: a view would hold its base, and with that the graph
        # that holds the view, for ever.
        result = torch.empty_strided((n, q, *g.pooled), _innermost(q, *g.pooled, n), dtype=x.dtype)
        y = x.new_empty(0).set_(result.untyped_storage(), 0, (q, m), (m, 1))  # type: ignore[call-overload]
        _affine(top, scale, p.beta, y.view(1, q, m))
        y.relu_()
        values = 4 * m // n
        omega: Tensor | float = 0.0 if statistics.constant else 1 / (n * values)
        if share is not None:
            omega = share / values
        kept = Kept(lease, a, w, sign, z, halves, top, y, inverse, scale, omega)
        return result, torch.addcmul(bias, sign, mean), variance, kept

    def backward(
        self, kept: Kept, grad: Tensor, needs_x: bool, needs_weight: bool
    ) -> tuple[Tensor | None, Tensor | None, Tensor, Tensor, Tensor]:
        """dL/dx, and of kernel, bias, γ and β."""
        g, work, k = self.geometry, self.buffers.lease(), kept
        q, m = k.top.shape
        n = len(grad)
        grad = grad.permute(1, 2, 3, 0).reshape(q, m)
        placed, spare = work.take(grad, 2 * q, m), work.take(grad, 2 * q, m)
        upper, lower, small = placed[:q], placed[q:], spare[:q]
        _masked(grad, k.y, 0, grad_input=upper)
        g1 = upper.sum(1)
        g2 = torch.mul(upper, k.top, out=small).sum(1) * k.inverse
        upper.mul_(k.scale.unsqueeze(1))
        # g goes to the plane of the maximum: to the second row where that is strictly larger, else to the first, ...
        _masked(upper, torch.sub(k.halves[q:], k.halves[:q], out=small), 0, grad_input=lower)
        upper.sub_(lower)
        # ... and likewise to one of two columns.
        dz = work.take(grad, 4 * q, m)
        left, right = dz[: 2 * q], dz[2 * q :]
        _masked(placed, torch.sub(k.z[2 * q :], k.z[: 2 * q], out=spare), 0, grad_input=right)
        torch.sub(placed, right, out=left)
        slope, level = k.scale * g2 * k.inverse, k.scale * g1
        free = level  # dL/dbias: what the statistics leave of a common shift
        if isinstance(k.omega, Tensor):
            common = self._affine4(k.z, slope, level, work)
            dz.sub_(common.view(-1, n).mul_(k.omega).view_as(dz))
            free = level * (1 - k.omega.sum() * (4 * m // n))
        elif k.omega:
            dz.sub_(self._affine4(k.z, slope * k.omega, level * k.omega, work))
            free = torch.zeros_like(level)
        d_weight = d_x = None
        if needs_weight:
            d_weight = g.fold(torch.mm(dz, k.a[:-1].t())) * k.sign.view(-1, 1, 1, 1)
        if needs_x:
            d_x = g.scatter(torch.mm(k.wide[:, :-1].t(), dz, out=work.take(grad, len(k.a) - 1, m)), n)
        return d_x, d_weight, k.sign * free, k.sign * g2, g1

    def tangent(self, kept: Kept, gamma: Tensor, x: Tensor | None, p: list[Tensor | None], n: int) -> Tensor:
        """ẏ from the tangents of the input and of kernel, bias, γ and β; None stands for zero."""
        g, work, k = self.geometry, self.buffers.lease(), kept
        weight, bias, d_gamma, beta = p
        q, m = k.top.shape
        dz = work.take(k.z, 4 * q, m).zero_()
        if weight is not None:
            torch.mm(g.expand(weight * k.sign.view(-1, 1, 1, 1)), k.a, out=dz)
        if x is not None:
            dz.addmm_(k.wide[:, :-1], g.gather(x, work)[:-1])
        if bias is not None:
            dz.add_(self._tiled(k.sign * bias, 4))
        d_scale = torch.zeros_like(k.scale)
        if not isinstance(k.omega, float) or k.omega:
            share = k.omega * (4 * m // n) if isinstance(k.omega, Tensor) else None
            dz.sub_(self._tiled(self._average(self._mean(dz, share)), 4))
            product = torch.mul(k.z, dz, out=work.take(k.z, 4 * q, m))
            d_scale = -k.scale * k.inverse.square() * self._average(self._mean(product, share))
        if d_gamma is not None:
            d_scale = d_scale + torch.where(gamma < 0, -d_gamma, d_gamma) * k.inverse
        halves = self._follow(k.z, dz, work)
        top = self._follow(k.halves, halves, work)
        top.mul_(k.scale.unsqueeze(1)).addcmul_(k.top, d_scale.unsqueeze(1))
        if beta is not None:
            top.add_(beta.unsqueeze(1))
        out = _masked(top, k.y, 0, grad_input=torch.empty_like(k.y))
        return out.view(q, *g.pooled, n).permute(3, 0, 1, 2)

    @staticmethod
    def _follow(values: Tensor, tangents: Tensor, work: Lease) -> Tensor:
        """The tangent of ``maximum(first half, second half)``."""
        half = len(values) // 2
        first, second = tangents[:half], tangents[half:]
        ahead = torch.sub(values[half:], values[:half], out=work.take(values, half, values.shape[1]))
        gain = torch.sub(second, first, out=work.take(values, half, values.shape[1]))
        return _masked(gain, ahead, 0, grad_input=gain).add_(first)

    @staticmethod
    def _affine4(planes: Tensor, slope: Tensor, level: Tensor, work: Lease) -> Tensor:
        """``slope`` · z + ``level`` on all four planes."""
        four = planes.view(4, -1, planes.shape[1])
        return _affine(four, slope, level, work.take(planes, *four.shape)).view_as(planes)

    @staticmethod
    def _mean(rows: Tensor, share: Tensor | None) -> Tensor:
        """The mean of each row (positions·N), every example counted with its share."""
        if share is None:
            return rows.mean(1)
        return torch.mv(rows.view(-1, len(share)), share).view(len(rows), -1).mean(1)

    def _average(self, planes: Tensor) -> Tensor:
        """The mean over the four planes, one number per channel."""
        return planes.view(4, -1).mean(0)

    @staticmethod
    def _tiled(channels: Tensor, times: int) -> Tensor:
        """One number per row of ``times`` planes, as a column."""
        return channels.expand(times, -1).reshape(-1, 1)


def _innermost(channels: int, height: int, width: int, n: int) -> tuple[int, int, int, int]:
    """The strides of (N, C, H, W) that lies as (C, H, W, N)."""
    return 1, height * width * n, width * n, n


def _affine(x: Tensor, slope: Tensor, level: Tensor, out: Tensor) -> Tensor:
    """``slope`` · x + ``level`` with two numbers per channel, for x (C, M) or (4, C, M).

    Batch norm with nothing to normalise: torch has no other kernel that does this in one vectorised pass.
    """
    batch = x if x.dim() == 3 else x.unsqueeze(0)
    nothing, zeros, ones = x.new_empty(0), torch.zeros_like(slope), torch.ones_like(slope)
    torch.native_batch_norm(batch, slope, level, zeros, ones, False, 0.0, 0.0, out=(out, nothing, nothing))
    return out.view_as(x)
