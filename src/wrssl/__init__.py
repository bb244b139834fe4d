"""wrssl: semi-supervised learning that is robust against an unlabeled pool that may contain anything.

The names below are loaded when they are first used, so that ``import wrssl`` and ``wrssl --help`` are quick.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from wrssl.api import WRSSLError
    from wrssl.auditing import audit
    from wrssl.data import Scenario, load_scenario
    from wrssl.embedding import Embedder, embed, list_embedders, register_embedder
    from wrssl.estimator import WRSSLClassifier
    from wrssl.norm import (
        WeightedBatchNorm1d,
        WeightedBatchNorm2d,
        WeightedBatchNorm3d,
        convert_batchnorm,
        sample_weights,
    )
    from wrssl.registry import (
        list_methods,
        list_weightings,
        load_plugin,
        register_method,
        register_model,
        register_prior,
        register_solver,
        register_source,
        register_weighting,
    )
    from wrssl.runs import load
    from wrssl.training import Callback, check_hypergradient, fit

__version__ = "0.2.0"

_ROOMS = {
    "api": ("WRSSLError",),
    "auditing": ("audit",),
    "data": ("Scenario", "load_scenario"),
    "embedding": ("Embedder", "embed", "list_embedders", "register_embedder"),
    "estimator": ("WRSSLClassifier",),
    "norm": (
        "WeightedBatchNorm1d",
        "WeightedBatchNorm2d",
        "WeightedBatchNorm3d",
        "convert_batchnorm",
        "sample_weights",
    ),
    "registry": (
        "list_methods",
        "list_weightings",
        "load_plugin",
        "register_method",
        "register_model",
        "register_prior",
        "register_solver",
        "register_source",
        "register_weighting",
    ),
    "runs": ("load",),
    "training": ("Callback", "check_hypergradient", "fit"),
}
_HOME = {name: f"wrssl.{room}" for room, names in _ROOMS.items() for name in names}

__all__ = [
    "Callback",
    "Embedder",
    "Scenario",
    "WRSSLClassifier",
    "WRSSLError",
    "WeightedBatchNorm1d",
    "WeightedBatchNorm2d",
    "WeightedBatchNorm3d",
    "audit",
    "check_hypergradient",
    "convert_batchnorm",
    "embed",
    "fit",
    "list_embedders",
    "list_methods",
    "list_weightings",
    "load",
    "load_plugin",
    "load_scenario",
    "register_embedder",
    "register_method",
    "register_model",
    "register_prior",
    "register_solver",
    "register_source",
    "register_weighting",
    "sample_weights",
]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'wrssl' has no attribute {name!r}")
    value = getattr(importlib.import_module(_HOME[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
