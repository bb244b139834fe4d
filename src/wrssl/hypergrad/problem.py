"""What the hypergradient needs to know of a bilevel problem, whatever its parameters are.

The inner problem minimises ``L_T(θ, w) = L_labelled(θ) + (λ/B_u) Σ_j w_j r_j(θ) + (μ/2)‖θ‖²`` over θ; the
outer one wants dL_V/dw. `HeadProblem` (θ = last layer) and `NetworkProblem` (θ = all parameters) implement this.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol, TypeAlias, TypeVar

from torch import Tensor

Matvec: TypeAlias = Callable[[Tensor], Tensor]
P = TypeVar("P", bound="BilevelProblem")


class BilevelProblem(Protocol):
    """Gradients and products at any θ; θ may have any shape, and nothing here changes the model."""

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
