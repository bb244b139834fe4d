"""Hypergradients: how the validation loss answers to the weight of each unlabelled example.

``head_hypergradient`` is the function to start with. Underneath, ``implicit_hypergradient`` runs one algorithm over
a problem (`HeadProblem`, closed form on cached features; `LogitProblem`, all parameters with the Gauss-Newton matrix;
`NetworkProblem`, all parameters with the exact Hessian) and a solver.
"""

from __future__ import annotations

from wrssl.hypergrad.check import check_head, check_one_step
from wrssl.hypergrad.clusters import segment_mean, segment_sum
from wrssl.hypergrad.comparison import CheckResult, compare
from wrssl.hypergrad.head import HeadProblem
from wrssl.hypergrad.head_gradient import head_hypergradient
from wrssl.hypergrad.implicit import Estimate, implicit_hypergradient
from wrssl.hypergrad.logits import LogitProblem, LogitRows
from wrssl.hypergrad.network import NetworkProblem
from wrssl.hypergrad.power import largest_eigenvalue
from wrssl.hypergrad.problem import BilevelProblem
from wrssl.hypergrad.retrain import retrained_gradient, stationary_point
from wrssl.hypergrad.solvers import SOLVERS, cg, exact, neumann
from wrssl.hypergrad.zspace import LOSSES, LogitLoss, automatic, logit_loss

__all__ = [
    "LOSSES",
    "SOLVERS",
    "BilevelProblem",
    "CheckResult",
    "Estimate",
    "HeadProblem",
    "LogitLoss",
    "LogitProblem",
    "LogitRows",
    "NetworkProblem",
    "automatic",
    "cg",
    "check_head",
    "check_one_step",
    "compare",
    "exact",
    "head_hypergradient",
    "implicit_hypergradient",
    "largest_eigenvalue",
    "logit_loss",
    "neumann",
    "retrained_gradient",
    "segment_mean",
    "segment_sum",
    "stationary_point",
]
