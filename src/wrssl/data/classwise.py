"""The class-wise mixing of Oliver et al. (2018): the ratio is the share of the pool's CLASSES that are foreign.

Let n be the smaller of the numbers of in-distribution (ID) and of foreign classes, in the order of their labels, and
m the number of rows that each of the 2n candidates below can give. With k = ratio · n, which must be a whole number:

    the pool holds m rows of each of n classes: the last n − k of the ID classes and the first k foreign classes

The labelled classes stay as they are; what shrinks with the ratio is the number of ID classes that the pool knows. The
size of the pool, n · m, does not depend on the ratio. CIFAR-10 (n = 4, ratios 0, 0.25, …, 1):

    deer dog frog horse → airplane dog frog horse → airplane automobile frog horse → … → airplane automobile ship truck
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from wrssl.api import OptionError
from wrssl.data.parts import Array, Foreign, Parts
from wrssl.data.streams import stream


@dataclass(frozen=True)
class ForeignClasses(Foreign):
    """Foreign rows that have classes.

    Attributes:
        rows: all of them, in an order that is random by seed.
        labels: their classes.
    """

    rows: Array
    labels: Array


def foreign_classes(rows: Array, labels: Array) -> ForeignClasses:
    """Held-out classes of the same data set; ``draw(n)`` takes the first n rows."""
    assert len(rows) == len(labels)
    return ForeignClasses("classes", len(rows), lambda n, taken, taken_labels: rows[:n], rows, labels)


def mix_classes(parts: Parts, ratio: float, seed: int, clean: bool = False) -> tuple[Array, Array]:
    """The pool and the truth about it, by the rule above.

    Args:
        parts: what the source handed over.
        ratio: share of the pool's classes that are foreign.
        seed: of the order in which pool rows are stored.
        clean: leave the foreign classes out and keep exactly the ID rows, in the same order.

    Returns:
        The rows and ``is_ood``, one bool per row.
    """
    foreign = parts.foreign[0]
    if not isinstance(foreign, ForeignClasses) or len(parts.foreign) > 1:
        raise OptionError(
            'mode "oliver" exchanges classes, and these foreign rows have none; use mode "replace" or "add", or '
            'ood="classes" where there is such a kind.'
        )
    own, other = np.unique(parts.pool_labels), np.unique(foreign.labels)
    n = min(len(own), len(other))
    k = round(ratio * n)
    if abs(ratio * n - k) > 1e-6:
        below, above = int(ratio * n) / n, (int(ratio * n) + 1) / n
        raise OptionError(
            f'ratio {ratio} of {n} classes is no whole number of classes for mode "oliver"; use {below:g} or {above:g}.'
        )
    if clean and k == n:
        raise OptionError("A clean pool at ratio 1 would be empty; use a smaller ratio.")
    own, other = own[-n:], other[:n]
    m = min(
        *(int((parts.pool_labels == label).sum()) for label in own),
        *(int((foreign.labels == label).sum()) for label in other),
    )
    pieces = [parts.pool[parts.pool_labels == label][:m] for label in own[k:]]
    pieces += [foreign.rows[foreign.labels == label][:m] for label in other[:k]]
    n_id = (n - k) * m
    order = stream(seed, "pool order").permutation(n * m)
    if clean:
        order = order[order < n_id]
    return np.concatenate(pieces)[order], order >= n_id
