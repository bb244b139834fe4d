"""Judging a result: inference, metrics, the truth about the pool, verdicts, the report."""

from __future__ import annotations

from wrssl.evaluate.boundaries import draw_boundaries
from wrssl.evaluate.inference import accuracy_and_loss, logits_of
from wrssl.evaluate.metrics import (
    Interval,
    auroc,
    average_precision,
    correlation,
    foreign_share,
    fpr_at_tpr,
    paired_interval,
)
from wrssl.evaluate.new_samples import NewSampleJudge
from wrssl.evaluate.report import collect, render
from wrssl.evaluate.truth import is_ood
from wrssl.evaluate.verdicts import FALSE_DROP_RATE, energy, verdict_of, verdict_table

__all__ = [
    "FALSE_DROP_RATE",
    "Interval",
    "NewSampleJudge",
    "accuracy_and_loss",
    "auroc",
    "average_precision",
    "collect",
    "correlation",
    "draw_boundaries",
    "energy",
    "foreign_share",
    "fpr_at_tpr",
    "is_ood",
    "logits_of",
    "paired_interval",
    "render",
    "verdict_of",
    "verdict_table",
]
