"""The class-wise mixing of Oliver et al."""

from __future__ import annotations

import numpy as np
import pytest

from wrssl.data import load_scenario
from wrssl.data.mixing import mix, mix_classes
from wrssl.data.source import Parts, foreign_classes, stored
from wrssl.errors import OptionError

OWN = np.array(["bird", "cat", "deer", "dog", "frog", "horse"])
OTHER = np.array(["airplane", "automobile", "ship", "truck"])


def parts(own=(9, 9, 8, 7, 9, 9), other=(10, 8, 8, 9), kind=None) -> Parts:
    """Rows that carry their class as a number (foreign ones from 100) and their place within it."""
    rng = np.random.default_rng(0)
    pool = np.array([(k, n) for k, size in enumerate(own) for n in range(size)], dtype=np.float32)
    pool = pool[rng.permutation(len(pool))]
    strange = np.array([(100 + k, n) for k, size in enumerate(other) for n in range(size)], dtype=np.float32)
    strange = strange[rng.permutation(len(strange))]
    foreign = foreign_classes(strange, OTHER[strange[:, 0].astype(int) - 100]) if kind is None else kind
    few = pool[:2], np.zeros(2, np.int64)
    return Parts(few, pool, OWN[pool[:, 0].astype(int)], None, few, (foreign,), 0.0, "table", 0.5)


@pytest.mark.parametrize(
    ("ratio", "own", "other"),
    [
        (0, ["deer", "dog", "frog", "horse"], []),
        (0.25, ["dog", "frog", "horse"], ["airplane"]),
        (0.5, ["frog", "horse"], ["airplane", "automobile"]),
        (0.75, ["horse"], ["airplane", "automobile", "ship"]),
        (1, [], ["airplane", "automobile", "ship", "truck"]),
    ],
)
def test_the_classes_of_the_paper(ratio, own, other):
    rows, is_ood = mix(parts(), ratio, "oliver", 3)
    assert len(rows) == len(is_ood) == 4 * 7  # the smallest of the eight candidates has seven rows
    assert np.array_equal(is_ood, rows[:, 0] >= 100)
    names, counts = np.unique(OWN[rows[~is_ood, 0].astype(int)], return_counts=True)
    assert (names.tolist(), set(counts.tolist()) <= {7}) == (own, True)
    names, counts = np.unique(OTHER[rows[is_ood, 0].astype(int) - 100], return_counts=True)
    assert (names.tolist(), set(counts.tolist()) <= {7}) == (other, True)
    assert len({tuple(row) for row in rows.tolist()}) == len(rows)


def test_own_rows_are_nested_and_clean_keeps_them_in_order():
    half, is_ood = mix(parts(), 0.5, "oliver", 3)
    quarter, strange = mix(parts(), 0.25, "oliver", 3)
    assert {*map(tuple, half[~is_ood].tolist())} < {*map(tuple, quarter[~strange].tolist())}
    cleaned, truth = mix(parts(), 0.5, "oliver", 3, clean=True)
    assert np.array_equal(cleaned, half[~is_ood])
    assert not truth.any()
    assert not np.array_equal(mix(parts(), 0.5, "oliver", 4)[0], half)
    assert len(np.unique(np.diff(np.flatnonzero(is_ood)))) > 1  # not sorted by truth


def test_errors():
    with pytest.raises(OptionError, match=r"ratio 0.3 of 4 classes is no whole number .*; use 0.25 or 0.5"):
        mix_classes(parts(), 0.3, 0)
    with pytest.raises(OptionError, match="exchanges classes, and these foreign rows have none"):
        mix_classes(parts(kind=stored("fashion", np.zeros((5, 2), np.float32))), 0.5, 0)
    with pytest.raises(OptionError, match="clean pool at ratio 1 would be empty"):
        mix_classes(parts(), 1, 0, clean=True)
    with pytest.raises(OptionError, match="from 0 to 1"):
        mix(parts(), 1.5, "oliver", 0)
    with pytest.raises(OptionError, match="these foreign rows have none"):
        load_scenario("moons", "faraway", 0.5, "oliver")


def test_digits():
    runs = {ratio: load_scenario("digits", "classes", ratio, "oliver", seed=2) for ratio in (0, 0.5, 1)}
    sizes = {len(scn.unlabeled) for scn in runs.values()}
    assert len(sizes) == 1
    assert [float(scn._is_ood.double().mean()) for scn in runs.values()] == [0, 0.5, 1]
    assert runs[0.5].recipe["mode"] == "oliver"
    again = load_scenario(**runs[0.5].recipe)
    assert (again.unlabeled == runs[0.5].unlabeled).all()
    assert (runs[0].labeled[0] == runs[1].labeled[0]).all()
    assert (load_scenario("digits", "classes", 0.5, seed=2).labeled[0] == runs[1].labeled[0]).all()
