"""The table of policies: which statistics a pass uses, and whether it updates the running ones."""

from __future__ import annotations

from enum import Enum
from typing import NamedTuple

from torch import Tensor

from wrssl.api import Pass
from wrssl.errors import OptionError
from wrssl.norm.moments import Counts, Part


class Source(Enum):
    """Where the statistics of one pass come from."""

    BATCH = "batch"
    RUNNING = "running"
    WEIGHTED = "weighted"


class PassState(NamedTuple):
    """How the weighted layers behave until the surrounding context ends."""

    source: Source
    updates: bool
    weights: Tensor | None = None
    counts: Counts | None = None  # of the same weights, where they are known on the host
    part: Part | None = None  # of a batch that is spread over processes; then the weights are those of the whole


# Labeled and unlabeled batches are separate passes; each cell is (statistics, are the buffers updated).
_SAME_FOR_ALL = {
    Pass.LABELED: (Source.BATCH, True),
    Pass.LOOKAHEAD: (Source.BATCH, False),
    Pass.VALIDATION: (Source.BATCH, False),
    Pass.EVALUATION: (Source.RUNNING, False),
}


def _policy(source: Source, clean_updates: bool) -> dict[Pass, tuple[Source, bool]]:
    return {
        **_SAME_FOR_ALL,
        Pass.UNLABELED: (source, clean_updates),
        Pass.PERTURBED: (source, False),
        Pass.TEACHER: (source, clean_updates),  # on the teacher's own buffers
    }


POLICIES: dict[str, dict[Pass, tuple[Source, bool]]] = {
    "batch": _policy(Source.BATCH, True),
    "frozen": _policy(Source.BATCH, False),
    "eval": _policy(Source.RUNNING, False),
    "weighted": _policy(Source.WEIGHTED, True),
}


def policy_table(name: str) -> dict[Pass, tuple[Source, bool]]:
    """The row of ``POLICIES`` with this name, or an error that lists the names."""
    if name not in POLICIES:
        raise OptionError(f"There is no batch-norm policy {name!r}; choose one of {', '.join(POLICIES)}.")
    return POLICIES[name]
