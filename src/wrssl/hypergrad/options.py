"""How a weighting wants its hypergradient to be estimated."""

from __future__ import annotations

from dataclasses import dataclass, replace

from wrssl.api import OptionError
from wrssl.hypergrad.outer import check_outer_loss
from wrssl.hypergrad.solvers import named_solver

SCOPES = ("head", "network")
OUTER = ("validation", "labeled")


@dataclass(frozen=True)
class HypergradientOptions:
    """The choices of Algorithm 2.

    Attributes:
        scope: ``"head"`` differentiates the last layer on cached features, ``"network"`` all parameters.
        solver: ``"neumann"``, ``"cg"``, ``"exact"``, or ``"neumann-published"`` (``solvers/published.py``).
        P: terms of the Neumann series beyond the identity, or iterations of CG.
        J: look-ahead steps on a copy of the parameters.
        alpha: step of the look-ahead and of the Neumann series; None takes 1/λmax of the curvature, ``"lr"`` the
            learning rate of the training step.
        curvature: ``"gauss-newton"`` (positive semi-definite) or ``"exact"``, which costs several times
            more for the whole network.
        damping: δ in (H + δI)q = v, as a fraction of λmax.
        mixed_at: ``"end"`` takes the mixed term at θ^J, ``"start"`` at θ^0 (the one-step gradient of Lemma 1).
        outer: which examples L_V is about: ``"validation"``, or the ``"labeled"`` batch itself.
        outer_loss: what L_V is: ``"ce"``, the paper's, or ``"error"``, for the last layer only.
    """

    scope: str = "head"
    solver: str = "neumann"
    P: int = 5
    J: int = 3
    alpha: float | str | None = None
    curvature: str = "gauss-newton"
    damping: float = 0.0
    mixed_at: str = "end"
    outer: str = "validation"
    outer_loss: str = "ce"

    def __post_init__(self) -> None:
        if self.scope not in SCOPES:
            raise OptionError(f"scope must be one of {', '.join(SCOPES)}, not {self.scope!r}.")
        named_solver(self.solver)  # an unknown name is an error now, not in the middle of a run
        if self.curvature not in ("gauss-newton", "exact"):
            raise OptionError(f"curvature must be gauss-newton or exact, not {self.curvature!r}.")
        if self.mixed_at not in ("end", "start"):
            raise OptionError(f"mixed_at must be end or start, not {self.mixed_at!r}.")
        if self.outer not in OUTER:
            raise OptionError(f"outer must be one of {', '.join(OUTER)}, not {self.outer!r}.")
        if check_outer_loss(self.outer_loss) != "ce" and self.scope != "head":
            raise OptionError('outer_loss="error" goes with scope="head" only.')
        if isinstance(self.alpha, str) and self.alpha != "lr":
            raise OptionError(f"alpha must be a number or 'lr', not {self.alpha!r}.")
        if not 0 <= self.damping < float("inf"):
            raise OptionError(f"damping must be a finite number of at least 0, not {self.damping}.")
        if self.P < 0 or self.J < 0:
            raise OptionError(f"J and P count steps and terms and cannot be negative (J={self.J}, P={self.P}).")

    def with_rate(self, lr: float) -> HypergradientOptions:
        """The same options with ``alpha`` a number where it stands for the learning rate."""
        return replace(self, alpha=lr) if self.alpha == "lr" else self
