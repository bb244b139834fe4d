"""Training: the step, the loop, results and their files."""

from __future__ import annotations

from wrssl.training.callbacks import Callback
from wrssl.training.candidate import Workshop
from wrssl.training.check import check_hypergradient
from wrssl.training.data import TrainingData
from wrssl.training.embedding import EmbeddedRows, principal_components
from wrssl.training.files import write_atomically
from wrssl.training.fitting import fit
from wrssl.training.loop import Trainer
from wrssl.training.randomness import stream
from wrssl.training.result import Result
from wrssl.training.roles import assign_roles
from wrssl.training.stored import load

__all__ = [
    "Callback",
    "EmbeddedRows",
    "Result",
    "Trainer",
    "TrainingData",
    "Workshop",
    "assign_roles",
    "check_hypergradient",
    "fit",
    "load",
    "principal_components",
    "stream",
    "write_atomically",
]
