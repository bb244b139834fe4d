"""State files: the last two are kept, and one that is torn or changed is noticed, named and passed over."""

from __future__ import annotations

import re
import warnings

import pytest
import torch

from wrssl.api import DataError
from wrssl.runs.states import Generations, StateWarning


def write(folder, step, generations=None):
    """The state of a step: some tensors and numbers from which it can be told."""
    generations = Generations(folder) if generations is None else generations
    generations.write(step, {"model/w": torch.full((40, 50), float(step))}, {"step": step, "nothing": float("nan")})
    return generations


def step_of(folder):
    found = Generations(folder).read()
    assert torch.equal(found.tensors["model/w"], torch.full((40, 50), float(found.numbers["step"])))
    return found.numbers["step"]


@pytest.fixture
def two(tmp_path):
    """A folder with the states of steps 3 and 12; the newer file, the older file."""
    write(tmp_path, 12, write(tmp_path, 3))
    newer, older = Generations(tmp_path).files()
    return tmp_path, newer, older


def test_nothing_there(tmp_path):
    assert Generations(tmp_path / "state").read() is None


def test_numbers_come_back_as_they_were(tmp_path):
    numbers = {"step": 3, "exact": 0.1 + 0.2, "rows": [{"a": 1, "b": None}, {"a": float("inf")}], "none": [], "ä": {}}
    Generations(tmp_path).write(3, {}, numbers)
    found = Generations(tmp_path).read()
    assert found.numbers == {**numbers, "rows": [{"a": 1, "b": None}, {"a": None}]}
    assert found.tensors == {}


def test_the_newest_is_read_and_two_are_kept(tmp_path):
    generations = Generations(tmp_path / "state")
    for step in (2, 4, 999_999_999, 1_000_000_000, 1_000_000_001):  # the last two would be wrong as words
        write(None, step, generations)
        assert step_of(tmp_path / "state") == step
    names = sorted(path.name for path in (tmp_path / "state").iterdir())
    assert len(names) == 2
    assert all(re.fullmatch(r"100000000[01]-[0-9a-f]{64}\.safetensors", name) for name in names)
    assert Generations(tmp_path / "state").read().numbers["nothing"] is None


def flip(path, place):
    content = bytearray(path.read_bytes())
    content[place] ^= 1
    path.write_bytes(content)


@pytest.mark.parametrize(
    "damage",
    [
        lambda path: flip(path, 0),
        lambda path: flip(path, 60),
        lambda path: flip(path, path.stat().st_size // 2),  # in a parameter, where only the checksum can tell
        lambda path: flip(path, -1),
        lambda path: path.write_bytes(b""),
        lambda path: path.write_bytes(path.read_bytes()[:-1]),
        lambda path: path.write_bytes(path.read_bytes() + b"\0"),
        lambda path: path.write_bytes(b"\xff" * 8 + b"{" * 100),  # a header of 2^64 bytes
        lambda path: (path.unlink(), path.mkdir()),
    ],
    ids=["first", "header", "middle", "last", "empty", "short", "long", "header length", "folder"],
)
def test_damage_is_named_and_the_file_before_is_used(damage, two):
    folder, newer, older = two
    damage(newer)
    with pytest.warns(StateWarning, match=re.escape(str(newer))) as said:
        assert step_of(folder) == 3
    assert len(said) == 1
    assert "\n" not in str(said[0].message)
    assert "step 3" in str(said[0].message)
    assert older.exists()


def test_an_older_file_that_is_damaged_does_not_matter(two):
    folder, _, older = two
    flip(older, 100)
    assert step_of(folder) == 12


def test_content_that_is_no_state_is_damage_even_with_the_right_checksum(two):
    import hashlib

    from safetensors.torch import save

    folder, newer, _ = two
    newer.unlink()
    numberless = save({"numbers": torch.frombuffer(bytearray(b"[]"), dtype=torch.uint8)})
    for content in (b"hello", (2).to_bytes(8, "little") + b"{}", numberless):
        (folder / f"000000099-{hashlib.sha256(content).hexdigest()}.safetensors").write_bytes(content)
    with pytest.warns(StateWarning) as said:
        assert step_of(folder) == 3
    assert len(said) == 3


def test_both_damaged_is_an_error_that_names_both(two):
    folder, newer, older = two
    for path in (newer, older):
        flip(path, 100)
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # the error says everything
        with pytest.raises(DataError) as error:
            Generations(folder).read()
    assert str(newer) in str(error.value)
    assert str(older) in str(error.value)
    assert "starts over" in str(error.value)
    assert "\n" not in str(error.value)


def test_the_good_file_stays_beside_the_next_one_and_the_damaged_one_goes(two):
    folder, newer, older = two
    flip(newer, 100)
    generations = Generations(folder)
    with pytest.warns(StateWarning):
        generations.read()
    write(None, 5, generations)
    assert [path.name[:9] for path in generations.files()] == ["000000005", older.name[:9]]


def test_other_files_are_left_alone(two):
    folder, *_ = two
    for name in ("lock", "judge.safetensors", "report.json", "000000001-abc.safetensors"):
        (folder / name).write_text("mine")
    write(folder, 20)
    assert {"lock", "judge.safetensors", "report.json", "000000001-abc.safetensors"} <= {
        path.name for path in folder.iterdir()
    }


def test_what_is_flushed_when(tmp_path, disk):
    generations = Generations(tmp_path / "state")
    for step in (1, 2):
        write(None, step, generations)
    with disk() as watched:
        write(None, 3, generations)
    # The content before the name, the name before the oldest goes.
    assert watched.calls == ["save_file", "fsync", "replace", "fsync", "unlink"]


@pytest.mark.parametrize("kill", [False, True], ids=["full", "killed"])
@pytest.mark.parametrize("before", [[], [1], [1, 2], [1, 2, 3]], ids=len)
def test_whatever_goes_wrong_a_whole_state_is_there(before, kill, tmp_path, disk):
    trials = 0
    for at in range(12):
        folder = tmp_path / str(at) / "state"
        generations = Generations(folder)
        for step in before:
            write(None, step, generations)
        with disk(at, kill) as watched:
            try:
                write(None, 9, generations)
            except (OSError, disk.Killed):
                trials += 1
        found = Generations(folder).read()
        assert (0 if found is None else found.numbers["step"]) in (before[-1] if before else 0, 9)
        if not kill:
            assert not list(folder.glob(".*")), "a full disk must not be filled further"
        write(folder, 10)  # and it goes on from there
        assert step_of(folder) == 10
        assert not list(folder.glob(".*"))
        if len(watched.calls) <= at:
            break
    # Writing, flushing the file, renaming, flushing the folder; the names of two new folders, and the removal, besides.
    assert trials == 4 + 2 * (not before) + (kill and len(before) > 1)
