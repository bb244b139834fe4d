"""Kinds of prior: functions that fit a score telling a reference sample from a pool.

    @register_prior("mine")
    def mine(labeled, labels, pool):
        ...                       # fit something to the rows of both samples
        return lambda rows: ...   # one number per row, high where a row looks like the reference

``labeled`` (n, d) and ``pool`` (m, d) are float32 rows in the units of ``priors/samples.py``, ``labels`` (n,) are the
classes of the former. The returned score maps rows (k, d) to (k,) float64; its scale is free, ``priors/stack.py``
measures what each score is worth. A kind that draws random numbers, or that needs all references, declares a fourth
parameter ``context``.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from wrssl.errors import OptionError
from wrssl.registry import PRIORS

Matrix: TypeAlias = NDArray[np.float32]
Labels: TypeAlias = NDArray[np.int64]
Score: TypeAlias = Callable[[Matrix], NDArray[np.float64]]

DEFAULT = ("linear", "quadratic", "kernel", "kernel-narrow")


@dataclass(frozen=True)
class Context:
    """What a kind may use besides the rows that it is fitted to.

    Attributes:
        seed: for a generator of its own; the same in all folds.
        references: all rows of the reference, those of the held-out fold as well: for what must be the same in all
            folds and has nothing to do with a score, such as the width of a kernel.
    """

    seed: int
    references: Matrix


Kind: TypeAlias = Callable[[Matrix, Labels, Matrix, Context], Score]


def kind_named(name: str) -> Kind:
    """The registered kind as a function of four arguments, whether it declares ``context`` or not."""
    kind = PRIORS.get(name)
    if "context" in inspect.signature(kind).parameters:
        return lambda labeled, labels, pool, context: kind(labeled, labels, pool, context=context)
    return lambda labeled, labels, pool, context: kind(labeled, labels, pool)


def checked(name: str, scores: NDArray[np.float64], size: int) -> NDArray[np.float64]:
    """The scores of ``size`` rows by the kind of that name, which must be one finite number per row."""
    scores = np.asarray(scores, dtype=np.float64)
    if scores.shape != (size,) or not np.isfinite(scores).all():
        raise OptionError(
            f"The kind of prior {name!r} must score {size} rows by an array of shape ({size},) of finite numbers; "
            f"it returned shape {scores.shape}{'' if scores.shape != (size,) else ' with NaN or infinite values'}."
        )
    return scores
