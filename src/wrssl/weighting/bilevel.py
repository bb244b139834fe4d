"""What the paper's two variants share: Algorithm 2's options and its table of weights."""

from __future__ import annotations

import torch
from torch import Tensor

from wrssl.api import HypergradientRequest, OptionError, Signal, State, Weighting
from wrssl.hypergrad import check_request
from wrssl.weighting.descent import WeightDescent


class BilevelWeighting(Weighting):
    """Weights that descend the validation loss through the implicit hypergradient, every L steps.

    Args:
        J: look-ahead steps on a copy of the parameters.
        P: terms of the Neumann series (iterations of CG).
        L: steps between two weight updates.
        beta: β, the weight step, in units of the gradient's root mean square.
        l1: λ, the strength of the L1 term.
        alpha: step of look-ahead and Neumann series; None takes 1/λmax, ``"lr"`` the learning rate.
        solver: ``"neumann"``, ``"cg"``, ``"exact"``, or ``"neumann-published"``, the sign of the published code.
        scope: ``"head"`` (last layer, cached features) or ``"network"``.
        curvature: ``"gauss-newton"`` or ``"exact"``.
        damping: as a fraction of λmax.
        mixed_at: ``"end"`` or ``"start"``.
        outer_loss: ``"ce"``, the paper's, or ``"error"``, the expected error on validation examples.
        compat: ``"paper"`` takes plain steps w − β g, with ``alpha`` and ``beta`` as they are given.
    """

    def __init__(
        self,
        J: int = 3,
        P: int = 5,
        L: int = 5,
        beta: float = 0.1,
        l1: float = 1e-7,
        alpha: float | str | None = None,
        solver: str = "neumann",
        scope: str = "head",
        curvature: str = "gauss-newton",
        damping: float = 0.0,
        mixed_at: str = "end",
        outer_loss: str = "ce",
        compat: str | None = None,
    ) -> None:
        if L < 1:
            raise OptionError(f"L counts the steps between two weight updates and must be at least 1, not {L}.")
        if compat not in (None, "paper"):
            raise OptionError(f"compat must be None or 'paper', not {compat!r}.")
        if compat == "paper" and alpha is None:
            raise OptionError("compat='paper' takes the steps as given; pass alpha (the paper's is the learning rate).")
        self.every = L
        self.options = check_request(HypergradientRequest(
            scope=scope, solver=solver, P=P, J=J, alpha=alpha, curvature=curvature, damping=damping, mixed_at=mixed_at,
            outer_loss=outer_loss,
        ))  # fmt: skip
        self.descent = WeightDescent(beta, l1, plain=compat == "paper")
        self.table = torch.ones(0)

    def estimator(self, step: int) -> HypergradientRequest | None:
        """The options in every L-th step, None between."""
        return self.options if step % self.every == 0 else None

    def entries(self, index: Tensor) -> Tensor:
        """Which rows of the table these pool members share."""
        return index

    def weights(self, index: Tensor) -> Tensor:
        """The rows of the table."""
        return self.table[self.entries(index)]

    def update(self, index: Tensor, signal: Signal) -> None:
        """One step along the hypergradient."""
        if signal.hypergradient is not None:
            rows, gradient = self.gradient_of_rows(index, signal.hypergradient)
            self.table[rows] = self.descent.step(self.table[rows], gradient.to(self.table))

    def gradient_of_rows(self, index: Tensor, hypergradient: Tensor) -> tuple[Tensor, Tensor]:
        """The rows of the table that this batch concerns, and their gradient."""
        return index, hypergradient

    def state_dict(self) -> State:
        """The table and the running average of its gradient."""
        return {"table": self.table, **self.descent.state_dict()}

    def load_state_dict(self, state: State) -> None:
        """Inverse of ``state_dict``."""
        self.table = state["table"].clone()
        self.descent.load_state_dict(state)
