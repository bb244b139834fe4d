"""Loops compiled by numba where it is there, and the choice between them and tensor operations."""

from __future__ import annotations

import importlib
import os
from collections.abc import Callable
from functools import cache
from types import ModuleType
from typing import Any

SWITCH = "WRSSL_COMPILED"  # set to 0 to run without numba
# Sums may be reordered, which vector instructions need; NaN and infinity keep their meaning.
_ALLOWED = {"reassoc", "contract", "nsz"}


def compiled(function: Callable[..., Any]) -> Any:
    """``function`` as machine code, made at its first call and kept on disk where there is a place for it."""
    import numba

    options: dict[str, Any] = {"fastmath": _ALLOWED, "error_model": "numpy", "boundscheck": False, "nogil": True}
    try:
        return numba.njit(cache=True, **options)(function)
    except RuntimeError:  # no folder to keep the machine code in: it is made anew in every process
        return numba.njit(**options)(function)


@cache
def compiled_or_tensors(with_numba: str, without: str) -> ModuleType:
    """The first of two modules with the same functions, or the second where numba is missing or switched off."""
    if os.environ.get(SWITCH) != "0":
        try:
            return importlib.import_module(with_numba)
        except ImportError:
            pass
    return importlib.import_module(without)
