"""Hypergradients: how the validation loss changes with the weight of each unlabeled example.

``head_hypergradient`` is the function to start with. Underneath, ``implicit_hypergradient`` runs one algorithm over
a problem (`HeadProblem`, closed form on cached features; `LogitProblem`, all parameters with the Gauss-Newton matrix;
`NetworkProblem`, all parameters with the exact Hessian) and a solver (`solvers.py`, or one of your own by
``register_solver``).
"""

from __future__ import annotations

from wrssl.hypergrad.check import (
    CheckResult,
    check_head,
    check_one_step,
    compare,
    retrained_gradient,
    stationary_point,
)
from wrssl.hypergrad.forward import tangent
from wrssl.hypergrad.head import HeadProblem, HeadRows, head_hypergradient
from wrssl.hypergrad.implicit import Estimate, implicit_hypergradient, segment_mean, segment_sum
from wrssl.hypergrad.logit_losses import LOSSES, LogitLoss, automatic, logit_loss
from wrssl.hypergrad.network import LogitProblem, LogitRows, NetworkProblem
from wrssl.hypergrad.problem import BilevelProblem, Matvec
from wrssl.hypergrad.request import check_request, solver_options, with_rate
from wrssl.hypergrad.solvers import cg, exact, largest_eigenvalue, neumann, safe_step
from wrssl.registry import SOLVERS

__all__ = [
    "LOSSES",
    "SOLVERS",
    "BilevelProblem",
    "CheckResult",
    "Estimate",
    "HeadProblem",
    "HeadRows",
    "LogitLoss",
    "LogitProblem",
    "LogitRows",
    "Matvec",
    "NetworkProblem",
    "automatic",
    "cg",
    "check_head",
    "check_one_step",
    "check_request",
    "compare",
    "exact",
    "head_hypergradient",
    "implicit_hypergradient",
    "largest_eigenvalue",
    "logit_loss",
    "neumann",
    "retrained_gradient",
    "safe_step",
    "segment_mean",
    "segment_sum",
    "solver_options",
    "stationary_point",
    "tangent",
    "with_rate",
]
