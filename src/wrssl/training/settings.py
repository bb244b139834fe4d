"""The settings of a run that goes on are those with which it began."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

from wrssl.api import OptionError
from wrssl.training.files import plain
from wrssl.training.generations import StateWarning

# What computes, and not what is computed: with another one the result may differ in the last bits.
PROGRAMS = ("wrssl", "torch", "loops", "devices", "strategy")
# Where it is computed: a run may go on with more or fewer processes, and is the same up to rounding.
PLACES = ("devices", "strategy", "device")


def check_same(config: dict[str, Any], stored: dict[str, Any], folder: Path) -> None:
    """Refuse to go on with other settings than those in ``config.json``; say so where another program computes."""
    for name, value in plain(config).items():
        before = stored.get(name)
        if value == before or name in PLACES:
            continue
        if name not in PROGRAMS:
            raise OptionError(
                f"The run in {folder} was begun with {name}={before!r}, not with {value!r}; give the same settings, or "
                "another run directory."
            )
        warnings.warn(
            f"the run in {folder} was begun with {name} {before} and goes on with {value}, so that its result may "
            "differ in the last bits from that of an uninterrupted run",
            StateWarning,
            stacklevel=3,
        )
