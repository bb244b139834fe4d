"""Algorithm 2 of the paper: what its two weightings share, and the weight step.

    w ← clip(w − β g/RMS(g) − β λ, 0, 1)

Descent, the proximal step of the L1 term, projection on [0, 1]. RMS(g) is an exponential average over the updates. With
the mean over the batch, g carries 1/B, and a plain step of 0.1 moves an example by 10⁻⁵ in a whole training; measured
in units of RMS(g) a few visits suffice, and neither β nor λ depends on batch size, coefficient or scale of the loss.
Projection (not a sigmoid) lets a weight leave 0 again, because g_j does not depend on w_j.
"""

from __future__ import annotations

import torch
from torch import Tensor

from wrssl.api import BatchWeights, HypergradientRequest, OptionError, Signal, State, Weighting
from wrssl.hypergrad import check_request

MEMORY = 0.9  # of the exponential average: about the last ten updates


class WeightDescent:
    """w ← prox(w − step) for a table of weights.

    Args:
        beta: β, the step; in units of RMS(g) unless ``plain``.
        l1: λ of the L1 term, by the proximal map of β λ ‖w‖₁ on w ≥ 0; in units of RMS(g) unless ``plain``. The paper's
            10⁻⁷ is so small that near w = 1 a float32 weight does not notice it; from about 10⁻⁵ on it acts.
        plain: the paper's step w − β g.
    """

    def __init__(self, beta: float, l1: float, plain: bool) -> None:
        self.beta, self.l1, self.plain = beta, l1, plain
        self.mean_square = torch.zeros((), dtype=torch.float64)
        self.updates = torch.zeros((), dtype=torch.int64)

    def step(self, w: Tensor, gradient: Tensor) -> Tensor:
        """The new values of the weights ``w`` with gradient ``gradient``; both hold the entries that were visited."""
        gradient = torch.nan_to_num(gradient, 0.0, 0.0, 0.0)  # a broken estimate leaves its weight alone
        if not self.plain:
            self.updates += 1
            square = gradient.detach().to(torch.float64).square().mean().cpu()
            self.mean_square.lerp_(square, 1 - MEMORY)
            unbiased = self.mean_square / (1 - MEMORY ** self.updates.to(torch.float64))
            # No signal at all (confidences below the threshold) must not become 0/0.
            gradient = gradient / unbiased.sqrt().clamp_min(1e-30).to(gradient.dtype).to(gradient.device)
        return (w - self.beta * gradient - self.beta * self.l1).clamp(0, 1)

    def state_dict(self) -> State:
        """The running average."""
        return {"mean_square": self.mean_square, "updates": self.updates}

    def load_state_dict(self, state: State) -> None:
        """Inverse of ``state_dict``."""
        self.mean_square, self.updates = state["mean_square"].clone(), state["updates"].clone()


class BilevelWeighting(Weighting):
    """Weights that descend the validation loss through the implicit hypergradient, every L steps.

    Args:
        J: look-ahead steps on a copy of the parameters.
        P: terms of the Neumann series (iterations of CG).
        L: steps between two weight updates.
        beta: β, the weight step, in units of the gradient's root mean square.
        l1: λ, the strength of the L1 term.
        alpha: step of look-ahead and Neumann series; None takes 1/λmax, ``"lr"`` the learning rate.
        solver: a registered solver: ``"neumann"``, ``"cg"``, ``"exact"`` or one of your own.
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
        self.how = check_request(
            HypergradientRequest(
                scope=scope, solver=solver, P=P, J=J, alpha=alpha, curvature=curvature, damping=damping,
                mixed_at=mixed_at, outer_loss=outer_loss,
            )
        )  # fmt: skip
        self.descent = WeightDescent(beta, l1, plain=compat == "paper")
        self.table = torch.ones(0)

    def request(self, step: int) -> HypergradientRequest | None:
        """In every L-th step."""
        return self.how if step % self.every == 0 else None

    def entries(self, index: Tensor) -> Tensor:
        """Which rows of the table these pool members share."""
        return index

    def batch(self, index: Tensor) -> BatchWeights:
        """The rows of the table."""
        return BatchWeights(self.table[self.entries(index)])

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
