"""wrssl: semi-supervised learning that survives an unlabelled pool that may contain anything.

The names below are loaded when they are first used, so that ``import wrssl`` and ``wrssl --help`` are quick.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from wrssl.api import WRSSLError
    from wrssl.auditing import audit
    from wrssl.data import Scenario, load_scenario
    from wrssl.estimator import WRSSLClassifier
    from wrssl.methods import list_methods, register_method
    from wrssl.norm import (
        WeightedBatchNorm1d,
        WeightedBatchNorm2d,
        WeightedBatchNorm3d,
        convert_batchnorm,
        sample_weights,
    )
    from wrssl.training import check_hypergradient, fit, load
    from wrssl.weighting import list_weightings, register_weighting

__version__ = "0.1.0"

_HOME = {
    "WRSSLError": "wrssl.api",
    "audit": "wrssl.auditing",
    "Scenario": "wrssl.data",
    "load_scenario": "wrssl.data",
    "WRSSLClassifier": "wrssl.estimator",
    "list_methods": "wrssl.methods",
    "register_method": "wrssl.methods",
    "WeightedBatchNorm1d": "wrssl.norm",
    "WeightedBatchNorm2d": "wrssl.norm",
    "WeightedBatchNorm3d": "wrssl.norm",
    "convert_batchnorm": "wrssl.norm",
    "sample_weights": "wrssl.norm",
    "check_hypergradient": "wrssl.training",
    "fit": "wrssl.training",
    "load": "wrssl.training",
    "list_weightings": "wrssl.weighting",
    "register_weighting": "wrssl.weighting",
}

__all__ = [
    "Scenario",
    "WRSSLClassifier",
    "WRSSLError",
    "WeightedBatchNorm1d",
    "WeightedBatchNorm2d",
    "WeightedBatchNorm3d",
    "audit",
    "check_hypergradient",
    "convert_batchnorm",
    "fit",
    "list_methods",
    "list_weightings",
    "load",
    "load_scenario",
    "register_method",
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
