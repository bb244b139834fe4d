"""A column of text."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from wrssl.data.frames.kinds import CATEGORY, Name, texts_of

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class CategoryColumn:
    """A 0/1 value for each of the categories that are worth one.

    A category that only the pool has gets one too: it may be rare among few labels, and if it is foreign, it shows
    that. The labels choose first, so that a pool full of foreign categories cannot push out those that belong.

    Attributes:
        name: of the column.
        values: the categories with a value of their own, sorted.
        other: whether there is one for all other categories, as there were too many.
        missing: whether there is one for missing cells.
    """

    name: Name
    values: tuple[str, ...]
    other: bool
    missing: bool
    kind: str = CATEGORY

    @classmethod
    def fit(cls, name: Name, labeled: pd.Series, pool: pd.Series, limit: int) -> CategoryColumn:
        """At most ``limit`` categories: the most frequent among the labels, then the most frequent in the pool."""
        own, others = (Counter(texts_of(part, name).tolist()) for part in (labeled, pool))
        found = sorted((own.keys() | others.keys()) - {None}, key=lambda text: (-own[text], -others[text], text))
        return cls(name, tuple(sorted(found[:limit])), len(found) > limit, None in own or None in others)

    @property
    def feature_names(self) -> list[str]:
        """One per value."""
        extra = [f"{self.name} (other)"] * self.other + [f"{self.name} (missing)"] * self.missing
        return [*(f"{self.name}={text}" for text in self.values), *extra]

    def encode(self, cells: pd.Series) -> NDArray[np.float64]:
        """One row per cell; a category that is new counts as another one where there is such a value, else as none."""
        texts = texts_of(cells, self.name).tolist()
        place = {text: number for number, text in enumerate(self.values)}
        at = np.array([place.get(text, -1) for text in texts], dtype=np.int64)
        own = np.zeros((len(at), len(place)))
        own[at >= 0, at[at >= 0]] = 1.0
        absent = np.array([text is None for text in texts], dtype=bool)
        extra = [((at < 0) & ~absent)[:, None]] * self.other + [absent[:, None]] * self.missing
        return np.concatenate([own, *extra], axis=1)
