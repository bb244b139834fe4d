"""Training: the step, the loop, and what surrounds them. Results and their files are in ``wrssl.runs``."""

from __future__ import annotations

from wrssl.runs import Result, load
from wrssl.training.assembly import Assembly, assemble
from wrssl.training.batches import Batch, Batches, TrainingData, assign_roles
from wrssl.training.building import BuildContext, Candidate, build_network
from wrssl.training.callbacks import Callback, TensorBoard
from wrssl.training.check import check_hypergradient
from wrssl.training.embedding import EmbeddedRows, principal_components
from wrssl.training.fitting import fit, fit_with_config
from wrssl.training.loop import Plan, Trainer
from wrssl.training.passes import PolicyNet
from wrssl.training.planning import affordable_steps, plan_run
from wrssl.training.resuming import resume_run
from wrssl.training.seeing import see
from wrssl.training.step import Outcome, TrainingStep

__all__ = [
    "Assembly",
    "Batch",
    "Batches",
    "BuildContext",
    "Callback",
    "Candidate",
    "EmbeddedRows",
    "Outcome",
    "Plan",
    "PolicyNet",
    "Result",
    "TensorBoard",
    "Trainer",
    "TrainingData",
    "TrainingStep",
    "affordable_steps",
    "assemble",
    "assign_roles",
    "build_network",
    "check_hypergradient",
    "fit",
    "fit_with_config",
    "load",
    "plan_run",
    "principal_components",
    "resume_run",
    "see",
]
