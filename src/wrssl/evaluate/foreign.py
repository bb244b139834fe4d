"""How much of a pool looks foreign.

For a member that belongs the p-value of ``evaluate/verdicts.py`` is spread evenly over (0, 1), foreign ones have small
values. So the upper half holds half of the members that belong and hardly any other (Storey, 2002: "A direct approach
to false discovery rates"):

    share = 1 − 2 · #{p > ½} / M,   p = 1 − ood_score.

Foreign members that look familiar are counted as own, so it is a lower bound; it has the sampling error of a mean of M
coins, and of the reference, and may come out at 0 only by being cut there.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def foreign_share(ood_score: NDArray[np.float64]) -> float | None:
    """The share above; None where no member was compared with anything (every score ½, or no member)."""
    score = np.asarray(ood_score, dtype=np.float64)
    if len(score) == 0 or bool((score == 0.5).all()):
        return None
    return max(0.0, 1.0 - 2.0 * float((score < 0.5).mean()))
