"""The picture of decision boundaries: a panel per model, the pool in two groups, and no member overlooked."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
import torch
from matplotlib.figure import Figure
from PIL import Image
from torch import nn

import wrssl
from wrssl.evaluate import boundaries, draw_boundaries, is_ood


@pytest.fixture
def result():
    """A model whose boundary is the line x = 0.5."""
    model = nn.utils.skip_init(nn.Linear, 2, 2)
    with torch.no_grad():
        model.weight.copy_(torch.tensor([[-5.0, 0.0], [5.0, 0.0]]))
        model.bias.copy_(torch.tensor([2.5, -2.5]))
    return SimpleNamespace(model=model, metrics={"test_accuracy": 0.875})


@pytest.fixture
def scenario():
    return wrssl.load_scenario("moons", ood="faraway", seed=0)


def test_a_panel_per_result(scenario, result, tmp_path, global_rng_untouched):
    sizes = []
    for number in (1, 2):
        path = tmp_path / f"{number}.png"
        draw_boundaries(scenario, {f"model {k}": result for k in range(number)}, path)
        with Image.open(path) as picture:
            sizes.append(picture.size)
    assert sizes[1][0] == pytest.approx(2 * sizes[0][0], abs=2)
    assert sizes[1][1] == sizes[0][1]


def test_the_groups_of_the_pool_and_the_labeled_examples_are_told_apart(scenario, result):
    axis = Figure().subplots()
    boundaries._panel(axis, scenario, result)
    foreign = is_ood(scenario)
    labels = scenario.labeled[1]
    drawn = {points.get_label(): len(points.get_offsets()) for points in axis.collections if points.get_offsets().size}
    expected = {"pool, belongs": int((~foreign).sum()), "pool, does not belong": int(foreign.sum())}
    expected |= {f"labeled, class {k}": int((labels == k).sum()) for k in (0, 1)}
    assert {name: count for name, count in drawn.items() if name in expected} == expected
    (line,) = [path for lines in axis.collections for path in lines.get_paths() if len(path) > 100]
    np.testing.assert_allclose(line.vertices[:, 0], 0.5, atol=0.01)


def test_members_outside_of_the_panel_are_counted_beside_an_arrow(scenario, result):
    axis = Figure().subplots()
    boundaries._panel(axis, scenario, result)
    pool, foreign = scenario.unlabeled.numpy(), is_ood(scenario).numpy()
    (low_x, high_x), (low_y, high_y) = axis.get_xlim(), axis.get_ylim()
    x, y = pool[foreign].T
    outside = (x < low_x) | (x > high_x) | (y < low_y) | (y > high_y)
    (text,) = [annotation.get_text() for annotation in axis.texts if annotation.get_text()]
    assert outside.sum() > 0
    assert text.startswith(f"{outside.sum()} more around (")


def test_without_truth_the_whole_pool_is_one_group(scenario, result):
    known = wrssl.Scenario(scenario.labeled, scenario.unlabeled, overlap="allow")
    axis = Figure().subplots()
    boundaries._panel(axis, known, result)
    drawn = {points.get_label(): len(points.get_offsets()) for points in axis.collections}
    assert drawn["pool, belongs"] == len(scenario.unlabeled)
    assert not [annotation for annotation in axis.texts if annotation.get_text()]
