"""Two coordinates per point: principal components against a decomposition of NumPy, and groups that stay together."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.spatial.distance import cdist, pdist
from threadpoolctl import threadpool_limits

from wrssl.evaluate.report.layout import FEWEST, across, components, place


def groups(each: int, number: int = 3, dim: int = 40) -> tuple[np.ndarray, np.ndarray]:
    random = np.random.default_rng(3)
    label = np.arange(each * number) % number
    points = 4 * random.standard_normal((number, dim))[label] + random.standard_normal((len(label), dim))
    return points, label


@pytest.mark.parametrize("shape", [(200, 12), (12, 200)])
def test_components_are_those_of_a_singular_value_decomposition(shape):
    points = np.random.default_rng(0).standard_normal(shape) * np.arange(1, shape[1] + 1)
    u, s, _ = np.linalg.svd(points - points.mean(0), full_matrices=False)
    found = components(points, 4)
    expected = (u * s)[:, :4]
    np.testing.assert_allclose(np.abs(found), np.abs(expected), rtol=0, atol=1e-8 * np.abs(expected).max())
    largest = found[np.abs(found).argmax(0), np.arange(4)]
    assert (largest > 0).all()


def test_few_points_are_placed_by_their_components_alone():
    points = np.random.default_rng(1).standard_normal((FEWEST - 1, 8)) * np.arange(1, 9)
    found, way = place(points)
    assert way == "components"
    u, s, _ = np.linalg.svd(points - points.mean(0), full_matrices=False)
    ratio = pdist(found) / pdist((u * s)[:, :2])
    np.testing.assert_allclose(ratio, ratio[0], rtol=1e-9)


def test_groups_stay_together():
    points, label = groups(60)
    found, way = place(points)
    assert way == "neighbors"
    apart = cdist(found, found) + np.diag(np.full(len(found), np.inf))
    assert (label[apart.argmin(1)] == label).mean() > 0.98
    assert found.min() == 0
    assert found.max() == 1


def test_it_lies_across():
    random = np.random.default_rng(2).standard_normal((50, 2)) * [1, 9]
    turned = across(random)
    assert np.ptp(turned[:, 0]) == 1 > np.ptp(turned[:, 1])
    np.testing.assert_allclose(pdist(turned) / pdist(random), pdist(turned)[0] / pdist(random)[0], rtol=1e-9)


def test_it_is_the_same_each_time_whatever_the_number_of_threads():
    points, _ = groups(50)
    found = []
    for threads in (1, 4):
        with threadpool_limits(threads):
            found.append(place(points)[0])
    np.testing.assert_array_equal(*found)


@pytest.mark.parametrize(
    "points",
    [
        np.ones((80, 5)),
        np.ones((1, 5)),
        np.arange(2.0)[:, None],
        np.repeat(np.eye(4), 30, axis=0),
        np.arange(100.0)[:, None],
    ],
    ids=["all equal", "one", "two in one column", "four places", "a line"],
)
def test_degenerate_points_have_coordinates_too(points):
    found, _ = place(points)
    assert found.shape == (len(points), 2)
    assert np.isfinite(found).all()
    assert found.min() >= 0
    assert found.max() <= 1
