"""Directions of rows, principal components of them, and views that were embedded before."""

from __future__ import annotations

import numpy as np
import torch

from wrssl.data import Directions, Projection, StoredViews, raw_rows, transform_from_state, unit_rows


def test_a_direction_has_length_1_and_points_away_from_the_center():
    random = np.random.default_rng(0)
    x, c = random.normal(size=(7, 5)), random.normal(size=5)
    moved = x - c
    expected = moved / np.sqrt(np.square(moved).sum(1))[:, None]
    found = unit_rows(torch.from_numpy(x), torch.from_numpy(c)).numpy()
    assert np.abs(found - expected).max() < 1e-14
    assert unit_rows(torch.from_numpy(c[None]), torch.from_numpy(c)).abs().max() == 0  # no direction


def test_components_of_directions_are_those_of_numpy_and_survive_storage():
    random = np.random.default_rng(1)
    pool = (random.normal(size=(300, 60)) * np.linspace(3, 0.1, 60) + 2).astype(np.float32)
    rows, center = torch.from_numpy(pool), torch.from_numpy(pool.mean(0))
    made = Projection.of(rows, torch.arange(300), Directions(center))
    unit = pool.astype(np.float64) - pool.mean(0)
    unit /= np.linalg.norm(unit, axis=1)[:, None]
    _, vectors = np.linalg.eigh(np.cov(unit.T, bias=True))
    expected = (unit - unit.mean(0)) @ vectors[:, ::-1][:, :50]
    found = made(rows).numpy()
    signs = np.sign((found * expected).sum(0))
    assert np.abs(found - signs * expected).max() < 1e-4  # rows are float32
    again = transform_from_state(made.state_dict())
    assert torch.equal(again(rows), made(rows))
    assert isinstance(transform_from_state(Directions(center).state_dict()), Directions)
    assert transform_from_state({}) is raw_rows


def test_half_precision_becomes_float32():
    x = torch.randn(4, 6, generator=torch.Generator().manual_seed(0)).half()
    assert Directions(torch.zeros(6))(x).dtype == torch.float32


def test_stored_views_are_drawn_row_by_row():
    tables = [torch.full((10, 2), float(100 * v)) + torch.arange(10.0)[:, None] for v in (1, 2)]
    index = torch.tensor([7, 3, 3, 0] * 300)
    x = index.float()[:, None].expand(-1, 2).contiguous()
    views, generator = StoredViews(tables, index), torch.Generator().manual_seed(0)
    weak, strong = views.weak(x, generator), views.strong(x, generator)
    assert torch.equal(weak % 100, x)  # a view of the same member
    assert torch.equal(strong % 100, x)
    assert torch.equal(x, index.float()[:, None].expand(-1, 2)), "the batch itself stays"
    counts = torch.bincount((weak[:, 0] // 100).long(), minlength=3).double() / len(x)
    assert (counts - 1 / 3).abs().max() < 0.06  # four standard errors
    assert set((strong[:, 0] // 100).tolist()) == {1, 2}
    part = StoredViews(tables, slice(2, 5)).strong(torch.zeros(3, 2), generator)
    assert (part[:, 0] % 100).tolist() == [2, 3, 4]
