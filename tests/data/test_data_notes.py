from __future__ import annotations

import numpy as np
import pytest

from wrssl.data import Scenario
from wrssl.errors import DataError


def rows(start: int, number: int) -> np.ndarray:
    return np.random.default_rng(start).normal(size=(number, 3)).astype(np.float32)


PARTS = {"labeled": rows(1, 6), "validation": rows(2, 9), "test": rows(3, 12), "unlabeled": rows(4, 20)}


def build(copies: dict[tuple[str, int], tuple[str, int]] | None = None, **kw) -> Scenario:
    parts = {name: part.copy() for name, part in PARTS.items()}
    for (part, row), (other, source) in (copies or {}).items():
        parts[part][row] = parts[other][source]
    return Scenario(
        (parts["labeled"], [0, 1, 2] * 2),
        parts["unlabeled"],
        (parts["validation"], [0, 1, 2] * 3),
        (parts["test"], [0, 1, 2] * 4),
        **kw,
    )


def test_nothing_odd_nothing_said():
    assert build().notes == []


@pytest.mark.parametrize(
    ("second", "first"),
    [
        ("validation", "labeled"),
        ("test", "labeled"),
        ("test", "validation"),
        ("unlabeled", "validation"),
        ("unlabeled", "test"),
    ],
)
def test_overlap_is_an_error_with_count_and_first_pair(second, first):
    copies = {(second, 5): (first, 2), (second, 7): (first, 0)}
    sentence = (
        rf"2 rows of the {second} part are also in the {first} part \(first: {second} row 5 equals {first} row 2\)"
    )
    with pytest.raises(DataError, match=sentence + r'; remove them, or pass overlap="allow"\.'):
        build(copies)
    (note,) = build(copies, overlap="allow").notes
    assert note.startswith(f"2 rows of the {second} part")


def test_labeled_rows_in_the_pool_are_just_a_note():
    (note,) = build({("unlabeled", 19): ("labeled", 5)}).notes
    assert note == (
        "1 row of the unlabeled part is also in the labeled part (first: unlabeled row 19 equals labeled row 5)."
    )


def test_copies_within_one_part_are_not_reported():
    assert build({("unlabeled", 0): ("unlabeled", 1), ("test", 0): ("test", 1)}).notes == []


def test_a_class_that_is_missing_in_validation():
    scn = Scenario((rows(1, 6), ["a", "b", "c"] * 2), rows(2, 5), (rows(3, 4), ["a", "c", "a", "c"]))
    assert scn.notes == ["The validation part has no example of the class 'b'."]


def test_constant_features():
    x, u = rows(1, 6), rows(2, 9)
    x[:, 1] = u[:, 1] = 4
    x[:, 2], u[:, 2] = 1, 2  # constant in each part, but it tells the parts apart
    assert Scenario((x, [0, 1] * 3), u).notes == [
        "Features with one value everywhere tell nothing and can be left out: 1."
    ]


def test_channels_last_images_are_suspected():
    x = np.random.default_rng(0).integers(0, 255, (20, 8, 8, 3), dtype=np.uint8)
    (note,) = Scenario((x[:10], [0, 1] * 5), x[10:]).notes
    assert "X.transpose(0, 3, 1, 2)" in note
    assert Scenario((x[:10].transpose(0, 3, 1, 2), [0, 1] * 5), x[10:].transpose(0, 3, 1, 2)).notes == []


def test_members_of_the_pool_are_called_by_their_names():
    (note,) = build({("unlabeled", 19): ("labeled", 5)}, ids=[f"cats/{n}.png" for n in range(20)]).notes
    assert note.endswith("(first: cats/19.png in the unlabeled part equals labeled row 5).")
