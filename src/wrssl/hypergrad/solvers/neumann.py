"""The truncated Neumann series, the solver of the paper."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from wrssl.api import DivergenceError
from wrssl.hypergrad.power import largest_eigenvalue, safe_step
from wrssl.hypergrad.problem import Matvec


def neumann(
    matvec: Matvec, b: Tensor, *, terms: int = 5, alpha: float | Tensor | None = None, check: bool = True
) -> Tensor:
    """``x = α Σ_{p=0}^{P} (I − αH)^p b``, which tends to ``H⁻¹ b`` as P grows, if 0 < α < 2/λ_max.

    Modes with eigenvalue below about 1/(αP) are not inverted: a small P acts like early stopping.

    Args:
        matvec: the product with a symmetric H.
        b: the right-hand side, any shape.
        terms: P, the number of products; P = 0 gives ``αb``.
        alpha: α; None takes 1/λ_max, found by power iteration.
        check: refuse a diverging series. False returns it as it is, and never waits for the device.

    Raises:
        DivergenceError: if the terms grow; the message names the α that converges, or says that none does.
    """
    if alpha is None:
        alpha = safe_step(largest_eigenvalue(matvec, b, iterations=20)[0])
    # H⁻¹ = α [ I + (I − αH) + (I − αH)² + (I − αH)³ + … ]
    previous = term = total = b
    for _ in range(terms):
        previous, term = term, term - alpha * matvec(term)
        total = total + term
    if check and terms > 0:
        _refuse_growth(matvec, previous, term, float(alpha))
    return alpha * total


def _refuse_growth(matvec: Matvec, previous: Tensor, term: Tensor, alpha: float) -> None:
    """Only the last two terms need a look: for a symmetric H the norms ‖(I − αH)^p b‖ are log-convex in p.

    Once a term is longer than the one before, all later ones grow, at an increasing rate.
    """
    before, after = float(previous.norm()), float(term.norm())
    slack = 1.0 + math.sqrt(torch.finfo(term.dtype).eps)  # the null space keeps ‖term‖ constant up to rounding
    if math.isfinite(after) and after <= slack * before:
        return
    size, x = largest_eigenvalue(matvec, term, iterations=100)
    largest = float(size)
    if alpha * largest >= 2.0 and float((x * matvec(x)).sum()) > 0.0:
        raise DivergenceError(
            f"The Neumann series diverges with alpha = {alpha:.3g}, because the largest eigenvalue is "
            f"{largest:.3g}: use alpha below {2.0 / largest:.3g}, for example alpha = {1.0 / largest:.3g}."
        )
    raise DivergenceError(
        "The Neumann series diverges with every alpha, because the curvature has a negative eigenvalue (or is not "
        f'finite): use curvature="gauss-newton", or a damping of up to {largest:.3g}.'
    )
