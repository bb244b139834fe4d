"""Two moons in the plane with foreign points far away or in the gap between them, as in the paper's Figure 2.

The moons are scikit-learn's: the upper half of the unit circle around (0, 0), and the lower half of the unit circle
around (1, 0.5), with noise σ = 0.1. 10 labels per class, a pool of 1,000, 400 validation and 1,000 test points.
"""

from __future__ import annotations

import numpy as np

from wrssl.data.source import Array, Foreign, LabeledArrays, Parts, Request
from wrssl.data.splits import divide, random_order
from wrssl.data.streams import numpy_stream
from wrssl.registry import register_source

_SPREAD = 0.1
_LABELS, _POOL, _VALIDATION, _TEST = 10, 1000, 400, 1000
_FAR, _FAR_SPREAD = 6.0, 0.5  # far enough to shift batch statistics by several standard deviations
_GAP, _EQUAL = 0.2, 0.1
_DRAW = 4096


@register_source("moons", kinds=("faraway", "boundary", "mixed"))
def load(request: Request) -> Parts:
    """The moons, and the foreign points that ``request.ood`` names."""
    rows, labels = _moons(_VALIDATION + 2 * _LABELS + _POOL, request.seed, "train")
    order = random_order(labels, _VALIDATION, request.seed, "moons split")
    labeled, validation, pool = divide(rows[order], labels[order], _VALIDATION, _LABELS, request)
    kinds = {"faraway": (_faraway,), "boundary": (_boundary,), "mixed": (_faraway, _boundary)}
    return Parts(
        labeled=labeled,
        pool=pool[0],
        pool_labels=pool[1],
        validation=validation,
        test=_moons(_TEST, request.seed, "test"),
        foreign=tuple(make(request.seed) for make in kinds[request.ood]),
        noise=0.15,
        augment="table",
        vat_epsilon=0.5,
    )


def _moons(number: int, seed: int, part: str) -> LabeledArrays:
    from sklearn.datasets import make_moons  # takes its time to import

    # scikit-learn needs its own kind of random state; its seed comes from the named stream.
    state = int(numpy_stream(seed, f"moons {part}").integers(2**32))
    rows, labels = make_moons(number, noise=_SPREAD, random_state=state)
    return rows.astype(np.float32), labels.astype(np.int64)


def _faraway(seed: int) -> Foreign:
    def draw(number: int, taken: Array, taken_labels: Array) -> Array:
        points = numpy_stream(seed, "moons faraway").normal(_FAR, _FAR_SPREAD, (number, 2))
        return points.astype(np.float32)

    return Foreign("faraway", None, draw)


def _boundary(seed: int) -> Foreign:
    def draw(number: int, taken: Array, taken_labels: Array) -> Array:
        rng = numpy_stream(seed, "moons boundary")
        found: list[Array] = []
        while sum(map(len, found)) < number:
            points = rng.uniform((-1.0, -0.5), (2.0, 1.0), (_DRAW, 2))
            upper, lower = moon_distances(points)
            # Nearly as far from one moon as from the other, and at least two noise σ away from both.
            inside = (np.abs(upper - lower) < _EQUAL) & (np.minimum(upper, lower) > _GAP)
            found.append(points[inside])
        return np.concatenate(found)[:number].astype(np.float32)

    return Foreign("boundary", None, draw)


def moon_distances(points: Array) -> tuple[Array, Array]:
    """Distance of each point to the upper and to the lower moon (the noise-free half circles).

    For the half circle y ≥ 0 of the unit circle: | ‖p‖ − 1 | where p_y ≥ 0, else the distance to the nearer end
    (±1, 0). The lower moon is the upper one turned by 180° about (0.5, 0.25).
    """

    def half_circle(p: Array) -> Array:
        ends = np.hypot(np.abs(p[:, 0]) - 1.0, p[:, 1])
        return np.where(p[:, 1] >= 0, np.abs(np.hypot(p[:, 0], p[:, 1]) - 1.0), ends)

    return half_circle(points), half_circle(np.array([1.0, 0.5]) - points)
