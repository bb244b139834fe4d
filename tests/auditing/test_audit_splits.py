"""Splits of the labels for an audit."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import wrssl
from wrssl.api import DataError
from wrssl.auditing.splits import split


def scenario(per_class=9, validation=None, classes=3):
    random = np.random.default_rng(0)

    def part(n):
        y = np.repeat(np.arange(classes), n)
        return random.normal(size=(len(y), 2)).astype(np.float32), y

    held = None if validation is None else part(validation)
    return wrssl.Scenario(part(per_class), random.normal(size=(30, 2)).astype(np.float32), held, part(4))


def rows(*parts):
    return {tuple(row) for x, _ in parts for row in x.tolist()}


def test_a_third_of_every_class_is_held_out():
    whole = scenario()
    found = split(whole, 0)
    assert torch.bincount(found.test[1]).tolist() == [3, 3, 3]
    assert torch.bincount(found.labeled[1]).tolist() == [6, 6, 6]
    assert found.validation is None
    assert rows(found.labeled, found.test) == rows(whole.labeled)
    assert not rows(found.labeled) & rows(found.test)


def test_labels_stay_with_their_examples():
    whole = scenario(validation=20)
    parts = (whole.labeled, whole.validation)
    truth = {tuple(row): int(label) for x, y in parts for row, label in zip(x.tolist(), y, strict=True)}
    found = split(whole, 3)
    for x, y in (found.labeled, found.validation, found.test):
        assert all(truth[tuple(row)] == int(label) for row, label in zip(x.tolist(), y, strict=True))


def test_with_a_validation_set_the_number_of_labels_stays():
    whole = scenario(per_class=4, validation=20)
    found = split(whole, 0)
    assert torch.bincount(found.labeled[1]).tolist() == [4, 4, 4]
    assert torch.bincount(found.validation[1]).tolist() == [10, 10, 10]
    assert torch.bincount(found.test[1]).tolist() == [10, 10, 10]
    assert rows(found.labeled, found.validation, found.test) == rows(whole.labeled, whole.validation)
    assert not rows(found.test) & rows(whole.test)  # the user's test set is left alone


def test_seeds_differ_and_repeat_and_the_scenario_stays_as_it_is():
    whole = scenario()
    before = whole.labeled[0].clone()
    assert rows(split(whole, 0).test) == rows(split(whole, 0).test)
    assert rows(split(whole, 0).test) != rows(split(whole, 1).test)
    assert torch.equal(whole.labeled[0], before)


def test_too_few_labels_are_one_sentence():
    with pytest.raises(DataError, match="at least 3"):
        split(scenario(per_class=2), 0)
