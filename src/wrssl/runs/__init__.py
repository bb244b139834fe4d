"""What is on disk: the run directory, its lock, its states, results written and read whole or not at all."""

from __future__ import annotations

from wrssl.runs.directory import (
    CONFIG,
    REPORT,
    STATE,
    check_embedding,
    check_free,
    check_same,
    claim,
    free_name,
    is_finished,
    lock_run,
    new_run,
    read_config,
)
from wrssl.runs.files import StorageError, plain, sha256_of, storing, write_atomically, write_json
from wrssl.runs.interrupt import Interrupted, patient_interrupt, termination
from wrssl.runs.loading import damage_named, load, load_page
from wrssl.runs.result import ReportSource, Result, write_page
from wrssl.runs.states import Generations, Snapshot, StateWarning

__all__ = [
    "CONFIG",
    "REPORT",
    "STATE",
    "Generations",
    "Interrupted",
    "ReportSource",
    "Result",
    "Snapshot",
    "StateWarning",
    "StorageError",
    "check_embedding",
    "check_free",
    "check_same",
    "claim",
    "damage_named",
    "free_name",
    "is_finished",
    "load",
    "load_page",
    "lock_run",
    "new_run",
    "patient_interrupt",
    "plain",
    "read_config",
    "sha256_of",
    "storing",
    "termination",
    "write_atomically",
    "write_json",
    "write_page",
]
