"""The loops of a block compiled by numba: each number is read and written once, where tensor operations take turns.

The same functions as in ``tensors.py``, which says what each does. Every inner loop runs over examples, with few arrays
in it, so that the compiler can prove that none overlaps another and uses vector instructions. NaN stays NaN everywhere.
"""

from __future__ import annotations

from wrssl.fast.compiled.pooling import finish, followed, slopes, undo
from wrssl.fast.compiled.windows import gather, scatter

__all__ = ["finish", "followed", "gather", "scatter", "slopes", "undo"]
