"""Stacked scores of the references of a fold by what the other folds say.

The stack and what is taken out per class are fitted too, and to few references they fit well: scores that took part are
a little too good, and members that belong seem strange beside them. For a weight that does not matter, for a promise
about mistakes it does.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from wrssl.priors.classes import offsets
from wrssl.priors.stack import stack

Scores = NDArray[np.float64]
Numbers = NDArray[np.int64]


def honest_scores(
    known: Scores, pool: Scores, class_known: Numbers, folds_known: Numbers, folds_pool: Numbers, classes: int
) -> Scores:
    """The stacked scores of the references, without what is merely their class.

    Args:
        known: scores of the references by row and kind, out of fold.
        pool: those of the pool.
        class_known: what a classifier without the fold takes each reference for.
        folds_known: of the references.
        folds_pool: of the pool.
        classes: their number.
    """
    honest = np.empty(len(known))
    for fold in np.unique(folds_known):
        here = folds_known == fold
        shares, shift = stack(known[~here], pool[folds_pool != fold])
        off = offsets(known[~here] @ shares + shift, class_known[~here], classes)
        honest[here] = known[here] @ shares + shift - off[class_known[here]]
    return honest
