"""Meta and select halves, folds for cross-fitting."""

from __future__ import annotations

import pytest
import torch

from wrssl.api import OptionError
from wrssl.training.batches import FOLDS, assign_roles, fold_of


def labeled(n=40, classes=4):
    return torch.arange(n).float().unsqueeze(1), torch.arange(n) % classes


def test_halves_are_disjoint_complete_and_balanced():
    x, y = labeled()
    roles = assign_roles((x, y), seed=0, budget="halves")
    meta, select = set(roles.meta[0].flatten().tolist()), set(roles.select[0].flatten().tolist())
    assert not meta & select
    assert meta | select == set(x.flatten().tolist())
    assert torch.bincount(roles.meta[1]).tolist() == torch.bincount(roles.select[1]).tolist() == [5] * 4
    for part in (roles.meta, roles.select):
        assert torch.equal(part[0].flatten().long() % 4, part[1])  # rows and labels stay together


def test_halves_follow_the_seed():
    first, again, other = (assign_roles(labeled(), seed, "halves").meta[0] for seed in (0, 0, 1))
    assert torch.equal(first, again)
    assert not torch.equal(first, other)


def test_the_paper_shares_one_set():
    data = labeled()
    roles = assign_roles(data, 0, "paper")
    assert roles.meta is roles.select is data


def test_without_validation_there_is_no_role_and_a_single_example_selects():
    assert assign_roles(None, 0, "halves").meta is None
    one = (torch.zeros(1, 1), torch.zeros(1, dtype=torch.int64))
    assert assign_roles(one, 0, "halves").meta is None
    assert assign_roles(one, 0, "halves").select is one


def test_an_unknown_budget_lists_those_that_exist():
    with pytest.raises(OptionError, match="halves, paper"):
        assign_roles(None, 0, "rich")


def test_folds_are_balanced_within_classes():
    y = torch.arange(50) % 10
    folds = fold_of(y, seed=0)
    assert torch.bincount(folds).tolist() == [10] * FOLDS
    for k in range(10):
        assert sorted(folds[y == k].tolist()) == list(range(FOLDS))
