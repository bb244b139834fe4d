"""The request of a weighting (`wrssl.api.HypergradientRequest`): its checks, and what it means for the solver."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from wrssl.api import HypergradientRequest
from wrssl.errors import OptionError
from wrssl.hypergrad.outer import check_outer_loss
from wrssl.registry import SOLVERS


def check_request(request: HypergradientRequest) -> HypergradientRequest:
    """The request itself, or an `OptionError` for its first value that does not exist or does not go with another.

    A weighting calls this when it is made, so that a mistake is an error then and not in the middle of a run.
    """
    if request.scope not in ("head", "network"):
        raise OptionError(f"scope must be one of head, network, not {request.scope!r}.")
    SOLVERS.get(request.solver)
    if request.curvature not in ("gauss-newton", "exact"):
        raise OptionError(f"curvature must be gauss-newton or exact, not {request.curvature!r}.")
    if request.mixed_at not in ("end", "start"):
        raise OptionError(f"mixed_at must be end or start, not {request.mixed_at!r}.")
    if request.outer not in ("validation", "labeled"):
        raise OptionError(f"outer must be one of validation, labeled, not {request.outer!r}.")
    if check_outer_loss(request.outer_loss) != "ce" and request.scope != "head":
        raise OptionError('outer_loss="error" goes with scope="head" only.')
    if isinstance(request.alpha, str) and request.alpha != "lr":
        raise OptionError(f"alpha must be a number or 'lr', not {request.alpha!r}.")
    if not 0 <= request.damping < float("inf"):
        raise OptionError(f"damping must be a finite number of at least 0, not {request.damping}.")
    if request.P < 0 or request.J < 0:
        raise OptionError(f"J and P count steps and terms and cannot be negative (J={request.J}, P={request.P}).")
    return request


def with_rate(request: HypergradientRequest, lr: float) -> HypergradientRequest:
    """The same request with ``alpha`` a number where it stands for the learning rate of the training step."""
    return replace(request, alpha=lr) if request.alpha == "lr" else request


def solver_options(request: HypergradientRequest) -> dict[str, Any]:
    """The options of the request's solver for `implicit_hypergradient`, from the facts that were registered with it.

    A series takes P as its number of terms. Its divergence is checked where α comes from outside: with α = 1/λ_max a
    positive semi-definite series cannot diverge, and an indefinite Hessian (exact curvature) lets its negative modes
    grow, mildly for the few terms of the paper. An iterative solver takes P as its most iterations.
    """
    facts = SOLVERS.facts(request.solver)
    if facts.get("series"):
        return {"terms": request.P, "check": request.alpha is not None}
    if facts.get("iterative"):
        return {"iterations": request.P, "tolerance": 1e-3}
    return {}
