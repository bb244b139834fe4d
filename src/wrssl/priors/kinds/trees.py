"""Trees: extremely randomised ones (Geurts, Ernst, Wehenkel, 2006) see any foreign rows, from enough references.

Better than the other kinds from some thousand references on, ten times as slow, and worse with a hundred; so it is
there, and not among the default kinds.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from wrssl.priors.samples import Matrix, Samples, Score

TREES = 100


def trees(samples: Samples, seed: int) -> Score:
    """The log-odds of the share of the reference in the leaves that a row falls into."""
    from sklearn.ensemble import ExtraTreesClassifier

    model = ExtraTreesClassifier(TREES, min_samples_leaf=3, class_weight="balanced_subsample", random_state=seed)
    member = np.r_[np.ones(len(samples.known)), np.zeros(len(samples.pool))]
    model.fit(np.concatenate([samples.known, samples.pool]), member)

    def score(rows: Matrix) -> NDArray[np.float64]:
        p = model.predict_proba(rows)[:, 1].clip(0.5 / TREES, 1 - 0.5 / TREES)
        odds: NDArray[np.float64] = np.log(p / (1 - p))
        return odds

    return score
