"""The series as the paper's published code adds it up: not a solver, but the explanation of that code's results."""

from __future__ import annotations

from collections.abc import Callable

from torch import Tensor

from wrssl.hypergrad import largest_eigenvalue, safe_step
from wrssl.registry import register_solver


@register_solver("neumann-published", series=True)
def neumann_published(
    matvec: Callable[[Tensor], Tensor],
    b: Tensor,
    *,
    terms: int = 5,
    alpha: float | Tensor | None = None,
    check: bool = True,
) -> Tensor:
    """``x = b − Σ_{p=1}^{P} (I − αH)^p b``: the terms of the Neumann series with a minus where a plus belongs.

    For αH ≪ 1 this is (1 − P) b, so that from P = 2 on a step along −x climbs where ``neumann`` descends. It is here
    for comparison with the paper's numbers, and no weighting takes it by default.

    Args:
        matvec: the product with a symmetric H.
        b: the right-hand side, any shape.
        terms: P.
        alpha: α, the learning rate in that code; None takes 1/λ_max, as ``neumann`` does.
        check: accepted because every series has it, and ignored, since nothing converges.
    """
    if alpha is None:
        alpha = safe_step(largest_eigenvalue(matvec, b, iterations=20)[0])
    term = total = b
    for _ in range(terms):
        term = term - alpha * matvec(term)
        total = total - term
    return total
