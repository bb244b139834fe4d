"""Training: the step, the loop, results and their files."""

from __future__ import annotations

from wrssl.training.callbacks import Callback
from wrssl.training.check import check_hypergradient
from wrssl.training.fitting import fit
from wrssl.training.result import Result
from wrssl.training.stored import load

__all__ = ["Callback", "Result", "check_hypergradient", "fit", "load"]
