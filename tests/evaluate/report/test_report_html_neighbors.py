"""The nearest labels against a computation in NumPy, for members in doubt as for all others that are shown."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from wrssl.evaluate.report import neighbors
from wrssl.evaluate.report.neighbors import directions, nearest
from wrssl.evaluate.report.pool import unpacked


def cosines(scenario):
    """Between every member of the pool and every labeled row, from the definition."""
    pool, labeled = (rows.numpy().astype(np.float64) for rows in (scenario.unlabeled, scenario.labeled[0]))
    middle = pool.mean(0)
    u, v = ((rows - middle) / np.linalg.norm(rows - middle, axis=1, keepdims=True) for rows in (pool, labeled))
    return u @ v.T


def named(page):
    """For each member that is shown: labeled rows and cosines."""
    rows, number = np.array(page["labeled"]["rows"]), page["neighbors"]["number"]
    place, cosine = (unpacked(page["neighbors"][name]).reshape(-1, number) for name in ("place", "cosine"))
    return rows[place], 2 * cosine / 10_000 - 1


@pytest.mark.parametrize("kind", ["image", "text", None])
def test_every_member_that_is_shown_has_its_three_nearest_labels(make_in_embedding, kind):
    run = make_in_embedding(kind=kind)
    page = run.collect()
    shown = page["shown"]["members"]
    expected = cosines(run.scenario)[shown]
    rows, cosine = named(page)
    assert rows.shape == (len(shown), 3)
    assert {"doubt", "drop"} <= set(run.verdicts["verdict"].iloc[shown])
    np.testing.assert_array_equal(rows, np.argsort(-expected, axis=1)[:, :3])
    np.testing.assert_allclose(cosine, -np.sort(-expected, axis=1)[:, :3], rtol=0, atol=1.01e-4)


def test_the_class_of_each_label_is_its_own(make_in_embedding):
    run = make_in_embedding()
    page = run.collect()
    found = unpacked(page["labeled"]["label"])
    np.testing.assert_array_equal(found, run.scenario.labeled[1].numpy()[page["labeled"]["rows"]])


@pytest.mark.parametrize("part", [1, 2, 7, 100])
def test_labels_are_read_in_parts(generator, monkeypatch, part):
    labeled, center = torch.randn(40, 6, generator=generator), torch.zeros(6)
    members = directions(torch.randn(9, 6, generator=generator), center)
    monkeypatch.setattr(neighbors, "CHUNK", part)
    place, cosine = nearest(members, labeled, center)
    u, v = (rows / np.linalg.norm(rows, axis=1, keepdims=True) for rows in (members.numpy(), labeled.double().numpy()))
    np.testing.assert_array_equal(place, np.argsort(-(u @ v.T), axis=1)[:, :3])
    np.testing.assert_allclose(cosine, -np.sort(-(u @ v.T), axis=1)[:, :3], atol=1e-7)


@pytest.mark.parametrize("part", [1, 3, 100])
def test_of_equal_labels_the_first_come_first(monkeypatch, part):
    monkeypatch.setattr(neighbors, "CHUNK", part)
    labeled = torch.tensor([[0.0, 1.0], [2.0, 0.0], [0.0, 1.0], [4.0, 0.0], [1.0, 0.0]])
    place, cosine = nearest(torch.tensor([[1.0, 0.0]], dtype=torch.float64), labeled, torch.zeros(2))
    assert place.tolist() == [[1, 3, 4]]
    assert cosine.tolist() == [[1.0, 1.0, 1.0]]


def test_fewer_labels_than_three_and_a_row_in_the_middle(generator):
    center = torch.ones(4)
    members = directions(torch.ones(1, 4), center)
    place, cosine = nearest(members, torch.randn(2, 4, generator=generator), center)
    assert place.tolist() == [[0, 1]]
    assert cosine.tolist() == [[0.0, 0.0]]


def test_bytes_and_half_precision_are_rows_too():
    center = torch.zeros(2)
    np.testing.assert_allclose(directions(torch.tensor([[3.0, 4.0]]).half(), center), [[0.6, 0.8]], atol=1e-15)
    found = directions(torch.tensor([[0, 255]], dtype=torch.uint8), center)
    np.testing.assert_allclose(found, [[-(0.5**0.5), 0.5**0.5]], atol=1e-15)
