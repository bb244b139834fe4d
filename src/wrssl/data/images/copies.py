"""Labelled images that are there more than once."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from wrssl.data.convert import to_rows
from wrssl.data.images.decode import Bytes
from wrssl.data.images.scan import ImageFile, printable
from wrssl.data.overlap import row_hashes


def groups(rows: Bytes) -> npt.NDArray[np.int64]:
    """A number per row, the same for equal rows (and, with odds of one to 10¹⁹ per pair, for others)."""
    _, place = np.unique(row_hashes(to_rows(rows, "labelled")), return_inverse=True)
    return np.asarray(place.reshape(-1), dtype=np.int64)


def contradictions(rows: Bytes, labels: npt.NDArray[np.str_], files: list[ImageFile]) -> list[str]:
    """A note where one image is in the folders of two classes, which happens when folders are sorted by hand."""
    first: dict[int, int] = {}
    pairs = []
    for row, group in enumerate(groups(rows).tolist()):
        other = first.setdefault(group, row)
        if labels[other] != labels[row]:
            pairs.append((files[other].name, files[row].name))
    if not pairs:
        return []
    one, two = map(printable, pairs[0])
    many = f"{len(pairs)} labelled images are" if len(pairs) > 1 else "A labelled image is"
    return [f"{many} in the folders of two classes (first: {one} and {two}); remove it from the wrong one."]
