"""What the hypergradient needs to know of a bilevel problem, whatever its parameters are, and checks of its inputs.

The inner problem minimizes ``L_T(θ, w) = L_labeled(θ) + (λ/B_u) Σ_j w_j r_j(θ) + (μ/2)‖θ‖²`` over θ; the
outer one wants dL_V/dw. `HeadProblem` (θ = last layer), `LogitProblem` and `NetworkProblem` (θ = all parameters)
implement this.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol, TypeAlias, TypeVar

import torch
import torch.nn.functional as F
from torch import Tensor

from wrssl.errors import DataError

Matvec: TypeAlias = Callable[[Tensor], Tensor]
P = TypeVar("P", bound="BilevelProblem")


class BilevelProblem(Protocol):
    """Gradients and products at any θ; θ may have any shape, and no method changes the model."""

    w: Tensor

    def start(self) -> Tensor:
        """θ⁰: a detached copy of the current parameters."""

    def with_weights(self: P, w: Tensor) -> P:
        """The same problem with other weights."""

    def at(self: P, theta: Tensor) -> P:
        """The same problem that starts at another θ."""

    def train_loss(self, theta: Tensor) -> Tensor:
        """L_T(θ, w), a scalar."""

    def train_gradient(self, theta: Tensor) -> Tensor:
        """∇_θ L_T(θ, w), shaped like θ."""

    def curvature(self, theta: Tensor) -> Matvec:
        """``u ↦ (H + δI) u`` with H the Hessian (or Gauss-Newton matrix) of L_T at θ.

        A function, not a product: what does not depend on u is computed once and serves every product of a solve.
        """

    def validation_loss(self, theta: Tensor) -> Tensor:
        """L_V(θ), a scalar."""

    def validation_gradient(self, theta: Tensor) -> Tensor:
        """∇_θ L_V(θ), shaped like θ."""

    def mixed(self, theta: Tensor, q: Tensor) -> Tensor:
        """``−(λ/B_u) d/dt r_j(θ + t q)|_{t=0}`` for all j at once, shape ``(B_u,)``."""


# A wrong shape is refused when a problem is made, because broadcasting would hide it.


def check_weights(w: Tensor, size: int) -> Tensor:
    """The weights, detached. Only ``(size,)`` is allowed: ``(B, 1)`` times ``(B,)`` would become a (B, B) product."""
    if w.shape != (size,):
        raise DataError(
            f"The weights have shape {tuple(w.shape)}, but {size} unlabeled examples need shape ({size},): "
            "pass one weight per example, for example w.reshape(-1)."
        )
    return w.detach()


def feature_rows(h: Tensor, W: Tensor, bias: bool) -> Tensor:
    """``[h; 1]`` (``h`` without a bias), detached, in the type and on the device of W."""
    if h.ndim != 2 or h.shape[1] != W.shape[1]:
        raise DataError(
            f"Features of shape {tuple(h.shape)} do not go with a last layer of {W.shape[1]} inputs: "
            f"pass them as (examples, {W.shape[1]})."
        )
    h = h.detach().to(W)
    return F.pad(h, (0, 1), value=1.0) if bias else h


def one_hot(y: Tensor, classes: int) -> Tensor:
    """Class numbers as rows of 0 and 1, shape ``(B, C)``."""
    if y.ndim != 1 or y.is_floating_point():
        raise DataError(f"Labels must be class numbers of shape (examples,), not {y.dtype} of shape {tuple(y.shape)}.")
    return torch.zeros(len(y), classes, device=y.device).scatter_(1, y.long().unsqueeze(1), 1.0)
