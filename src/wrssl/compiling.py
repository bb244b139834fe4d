"""Loops compiled by numba."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numba

# Sums may be reordered, which vector instructions need; NaN and infinity keep their meaning.
_ALLOWED = {"reassoc", "contract", "nsz"}


def compiled(function: Callable[..., Any]) -> Any:
    """``function`` as machine code, made at its first call and cached on disk where there is a place for it."""
    options: dict[str, Any] = {"fastmath": _ALLOWED, "error_model": "numpy", "boundscheck": False, "nogil": True}
    try:
        return numba.njit(cache=True, **options)(function)
    except RuntimeError:  # no folder to keep the machine code in: it is compiled anew in every process
        return numba.njit(**options)(function)
