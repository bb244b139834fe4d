from __future__ import annotations

import random
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
import torch

import wrssl.data.sources
from wrssl.data import list_scenarios, load_scenario
from wrssl.data.download import data_folder
from wrssl.errors import DataError, OptionError

EMBEDDED = [(name, ood) for name in ("moons", "digits") for ood in list_scenarios()[name]]


def keys(rows) -> set[bytes]:
    return {row.tobytes() for row in rows.numpy()}


def same(a, b) -> bool:
    return all(torch.equal(x, y) for x, y in zip(a, b, strict=True))


def test_list():
    known = list_scenarios()
    known["mnist"] = known["mnist"][:4]  # the reproduction adds a kind where it is imported
    assert known == {
        "moons": ("faraway", "boundary", "mixed"),
        "digits": ("patches", "mean", "classes", "mixed"),
        "mnist": ("fashion", "emnist", "mean", "mixed"),
        "cifar10": ("classes",),
        "cifar100": ("classes",),
        "svhn": ("classes",),
    }
    files = {path.stem for path in Path(wrssl.data.sources.__path__[0]).glob("*.py")}
    assert {"moons", "digits", "mnist", "cifar", "svhn"} <= files


@pytest.mark.parametrize(("name", "ood"), EMBEDDED)
def test_the_same_seed_gives_the_same_and_another_one_another(name, ood):
    first, again, other = (load_scenario(name, ood, 0.3, seed=seed) for seed in (4, 4, 5))
    assert torch.equal(first.unlabeled, again.unlabeled)
    assert torch.equal(first._is_ood, again._is_ood)
    assert same(first.labeled, again.labeled)
    assert not torch.equal(first.labeled[0], other.labeled[0])
    assert first.recipe == {
        "name": name,
        "ood": ood,
        "ratio": 0.3,
        "mode": "replace",
        "seed": 4,
        "clean": False,
        "labels_per_class": None,
        "validation_size": None,
    }
    assert torch.equal(load_scenario(**first.recipe).unlabeled, first.unlabeled)
    assert first.name == f"{name}/{ood}"


@pytest.mark.parametrize(("name", "ood"), EMBEDDED)
def test_parts_do_not_depend_on_ratio_and_id_rows_are_nested(name, ood):
    runs = [load_scenario(name, ood, ratio, seed=2) for ratio in (0, 0.25, 0.5, 0.75, 1)]
    runs.append(load_scenario(name, ood, 0.75, "add", seed=2))
    size = len(runs[0].unlabeled)
    for scn, ratio in zip(runs[:5], (0, 0.25, 0.5, 0.75, 1), strict=True):
        assert len(scn.unlabeled) == size
        assert int(scn._is_ood.sum()) == round(ratio * size)
        assert same(scn.labeled, runs[0].labeled)
        assert same(scn.validation, runs[0].validation)
        assert same(scn.test, runs[0].test)
    held = [keys(scn.unlabeled[~scn._is_ood]) for scn in runs]
    assert all(high < low for low, high in pairwise(held[:5]))
    assert held[5] == held[3]
    foreign = [keys(scn.unlabeled[scn._is_ood]) for scn in runs]
    assert all(low < high for low, high in pairwise(foreign[:5]))
    assert not foreign[4] & held[0]


@pytest.mark.parametrize("mode", ["replace", "add"])
@pytest.mark.parametrize(("name", "ood"), EMBEDDED)
def test_clean_is_the_same_id_rows(name, ood, mode):
    dirty, clean = (load_scenario(name, ood, 0.5, mode, clean=flag) for flag in (False, True))
    assert torch.equal(clean.unlabeled, dirty.unlabeled[~dirty._is_ood])
    assert not clean._is_ood.any()
    assert same(clean.labeled, dirty.labeled)
    assert same(clean.test, dirty.test)


def test_fewer_validation_rows_change_nothing_else():
    full, few, none = (load_scenario("digits", validation_size=size) for size in (None, 25, 0))
    assert same(few.validation, (full.validation[0][:25], full.validation[1][:25]))
    assert none.validation is None
    for other in (few, none):
        assert torch.equal(other.unlabeled, full.unlabeled)
        assert same(other.labeled, full.labeled)
    with pytest.raises(OptionError, match="validation_size must be between 0 and 200"):
        load_scenario("digits", validation_size=201)


@pytest.mark.parametrize("ood", ["patches", "mean"])
def test_a_smaller_pool_keeps_the_share_and_changes_nothing_else(ood):
    full, few = (load_scenario("digits", ood, 0.25, unlabeled_size=size) for size in (None, 200))
    assert len(few.unlabeled) == 200
    assert int(few._is_ood.sum()) == 50
    assert keys(few.unlabeled[~few._is_ood]) < keys(full.unlabeled[~full._is_ood])
    assert same(few.labeled, full.labeled)
    assert same(few.validation, full.validation)
    assert same(few.test, full.test)
    assert torch.equal(load_scenario(**few.recipe).unlabeled, few.unlabeled)
    assert torch.equal(load_scenario("digits", ood, 0.25, unlabeled_size=10_000).unlabeled, full.unlabeled)
    with pytest.raises(OptionError, match="unlabeled_size must be at least 1, not 0"):
        load_scenario("digits", ood, unlabeled_size=0)


def test_fewer_labels_are_a_subset():
    ten, four = (load_scenario("digits", labels_per_class=number, ratio=0) for number in (10, 4))
    assert torch.bincount(four.labeled[1]).tolist() == [4] * 10
    assert keys(four.labeled[0]) < keys(ten.labeled[0])
    assert len(four.unlabeled) == len(ten.unlabeled) + 60
    with pytest.raises(DataError, match="use labels_per_class of at most"):
        load_scenario("digits", labels_per_class=500)
    with pytest.raises(OptionError, match="at least 1"):
        load_scenario("digits", labels_per_class=0)


def test_no_global_generator_is_touched_or_read():
    before = (torch.get_rng_state(), np.random.get_state()[1].copy(), random.getstate())  # noqa: NPY002
    first = load_scenario("moons", "mixed")
    assert torch.equal(before[0], torch.get_rng_state())
    assert np.array_equal(before[1], np.random.get_state()[1])  # noqa: NPY002
    assert before[2] == random.getstate()
    np.random.seed(1)  # noqa: NPY002
    assert torch.equal(first.unlabeled, load_scenario("moons", "mixed").unlabeled)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({"name": "imagenet"}, "choose one of moons, digits, mnist, cifar10, cifar100, svhn"),
        ({"name": "moons", "ood": "fashion"}, "choose ood from faraway, boundary, mixed"),
        ({"name": "moons", "ratio": 2}, "from 0 to 1"),
        ({"name": "moons", "mode": "swap"}, "mode must be"),
        ({"name": "cifar10", "mode": "swap", "data_dir": "/nowhere"}, "mode must be"),
        ({"name": "moons", "seed": -1}, "seed must be"),
        ({"name": "moons", "ratio": 1, "clean": True}, "clean pool at ratio 1"),
        ({"name": "moons", "ratio": 1, "mode": "add"}, "ratio 1"),
        ({"name": "moons", "labels_per_class": 2.5}, "whole number"),
        ({"name": "moons", "validation_size": True}, "whole number"),
    ],
)
def test_option_errors(arguments, sentence):
    with pytest.raises(OptionError, match=sentence):
        load_scenario(**arguments)


def test_where_data_is_looked_for(monkeypatch, tmp_path):
    monkeypatch.setenv("WRSSL_DATA", "/from/environment")
    assert data_folder("/given") == Path("/given")
    assert data_folder() == Path("/from/environment")
    monkeypatch.delenv("WRSSL_DATA")
    monkeypatch.setenv("XDG_CACHE_HOME", "/cache")
    assert data_folder() == Path("/cache/wrssl")
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert data_folder() == tmp_path / ".cache" / "wrssl"
    assert data_folder("~/x") == tmp_path / "x"
