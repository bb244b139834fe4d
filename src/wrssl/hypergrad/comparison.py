"""An estimate beside the truth, and what that means in plain words."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from wrssl.hypergrad.implicit import Estimate


@dataclass(frozen=True, eq=False)
class CheckResult:
    """An estimate beside the truth.

    Attributes:
        cosine: between the two; 1 means the same direction.
        relative_error: ``‖estimated − finite_difference‖ / ‖finite_difference‖``.
        estimated: dL_V/dw_j of the estimator, for the chosen examples.
        finite_difference: the same by moving each weight.
        stationarity: ρ where the estimate was taken, see ``Estimate``; None where it plays no part.
        largest_eigenvalue: λ_max of the curvature, where the estimator measured it.
        tolerance: the relative error up to which the estimate counts as right.
    """

    cosine: float
    relative_error: float
    estimated: Tensor
    finite_difference: Tensor
    stationarity: float | None = None
    largest_eigenvalue: float | None = None
    tolerance: float = 1e-4

    @property
    def passed(self) -> bool:
        """Whether the estimate equals the finite differences up to the tolerance."""
        return self.relative_error <= self.tolerance

    @property
    def verdict(self) -> str:
        """One sentence for a person."""
        if not bool(self.estimated.any() | self.finite_difference.any()):
            return "Both are zero: these weights have no effect here (no confident row?), so nothing was tested."
        if self.passed:
            return "The hypergradient is right: it equals the finite differences."
        if self.cosine > 0.9:
            return "The hypergradient points the right way, but its size is off: good for normalised steps."
        if self.cosine > 0.0:
            hint = "use more solver terms or CG"
            if self.stationarity is not None and self.stationarity > 1e-3:
                hint = "use more look-ahead steps, then more solver terms or CG"
            return f"The hypergradient is only roughly right: {hint}."
        return "The hypergradient points the wrong way: do not train weights with it."

    def __str__(self) -> str:
        lines = [
            self.verdict,
            f"cosine {self.cosine:.6f}, relative error {self.relative_error:.2e}, {len(self.estimated)} examples",
        ]
        if self.stationarity is not None:
            lines.append(f"stationarity |grad L_T| / |grad L_V| = {self.stationarity:.2e} (0 is ideal)")
        if self.largest_eigenvalue is not None:
            lines.append(f"largest curvature {self.largest_eigenvalue:.3g}")
        return "\n".join(lines)


def compare(estimate: Tensor | Estimate, finite_difference: Tensor, *, tolerance: float = 1e-4) -> CheckResult:
    """Put an estimate beside finite differences of the same examples."""
    numbers: dict[str, float | None] = {}
    if isinstance(estimate, Estimate):
        for name in ("stationarity", "largest_eigenvalue"):
            value = getattr(estimate, name)
            numbers[name] = None if value is None else float(value)
        estimate = estimate.gradient
    a, b = estimate.detach().double(), finite_difference.detach().double()
    tiny = torch.finfo(torch.float64).tiny
    cosine = float((a * b).sum() / (a.norm() * b.norm()).clamp_min(tiny))
    error = float((a - b).norm() / b.norm().clamp_min(tiny))
    return CheckResult(cosine, error, a, b, tolerance=tolerance, **numbers)
