"""Which loops a block runs: compiled ones where numba is there, tensor operations elsewhere."""

from __future__ import annotations

import importlib
import os
from functools import cache
from types import ModuleType

SWITCH = "WRSSL_COMPILED"  # set to 0 to run without numba


@cache
def loops() -> ModuleType:
    """The module with the loops, under the same names in both; ``tensors.py`` says what each does."""
    if os.environ.get(SWITCH) != "0":
        try:
            return importlib.import_module("wrssl.fast.compiled")
        except ImportError:
            pass
    return importlib.import_module("wrssl.fast.tensors")
