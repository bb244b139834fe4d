"""Solvers of ``H x = b`` from products with H alone, one per file; a new one is a file and a line here."""

from __future__ import annotations

from collections.abc import Callable

from torch import Tensor

from wrssl.api import OptionError
from wrssl.hypergrad.solvers.cg import cg
from wrssl.hypergrad.solvers.exact import exact
from wrssl.hypergrad.solvers.neumann import neumann
from wrssl.hypergrad.solvers.published import neumann_published

SOLVERS: dict[str, Callable[..., Tensor]] = {
    "neumann": neumann, "cg": cg, "exact": exact, "neumann-published": neumann_published
}  # fmt: skip
SERIES = ("neumann", "neumann-published")  # those with a step α and a number of terms


def named_solver(solver: str | Callable[..., Tensor]) -> Callable[..., Tensor]:
    """A solver by its name; a function is returned as it is."""
    if not isinstance(solver, str):
        return solver
    if solver not in SOLVERS:
        raise OptionError(f'There is no solver "{solver}": use one of {", ".join(SOLVERS)}, or a function.')
    return SOLVERS[solver]


__all__ = ["SERIES", "SOLVERS", "cg", "exact", "named_solver", "neumann"]
