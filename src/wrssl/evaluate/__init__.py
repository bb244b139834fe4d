"""Judging a result: inference, metrics, the truth about the pool, verdicts."""

from __future__ import annotations

from wrssl.evaluate.boundaries import draw_boundaries
from wrssl.evaluate.metrics import auroc
from wrssl.evaluate.truth import is_ood

__all__ = ["auroc", "draw_boundaries", "is_ood"]
