"""The truth about the pool; this is the only file that reads it."""

from __future__ import annotations

from torch import Tensor

from wrssl.data import Scenario


def is_ood(scenario: Scenario) -> Tensor | None:
    """One bool per pool member, shape (M,), or None where the truth is unknown. Training must not call this."""
    return scenario._is_ood
