"""Which loops a block runs: compiled ones where numba is there, tensor operations elsewhere."""

from __future__ import annotations

from types import ModuleType

from wrssl.compiling import compiled_or_tensors


def loops() -> ModuleType:
    """The module with the loops, under the same names in both; ``tensors.py`` says what each does."""
    return compiled_or_tensors("wrssl.fast.compiled", "wrssl.fast.tensors")
