"""Batch-norm statistics of pool and known rows, against the layers' own arithmetic."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from torch import nn

import wrssl
from wrssl.evaluate.report.batch_statistics import compare_statistics, moments
from wrssl.norm import convert_batchnorm, weighted_moments


def input_of(model, layer, rows):
    """The input of ``layer`` when ``rows`` go through the model."""
    inputs = []
    handle = layer.register_forward_pre_hook(lambda _, x: inputs.append(x[0]))
    with torch.no_grad():
        model(rows)
    handle.remove()
    return inputs[0]


def scenario_of(known, pool, labels=None):
    labels = np.arange(len(known)) % 2 if labels is None else labels
    return wrssl.Scenario((known[:4], labels[:4]), pool, (known, labels), overlap="allow")


@pytest.fixture
def network(generator):
    images = [nn.Conv2d(1, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.Flatten()]
    model = nn.Sequential(*images, nn.Linear(144, 6), nn.BatchNorm1d(6), nn.Linear(6, 2))
    with torch.no_grad():
        for tensor in model.state_dict().values():
            if tensor.is_floating_point():
                tensor.copy_(torch.rand(tensor.shape, generator=generator) + 0.1)
    return model.eval()


def test_moments_are_those_of_the_weighted_layers(network, generator):
    rows = torch.randn(1203, 1, 8, 8, generator=generator)  # three parts, the last one small
    weights = torch.rand(2, 1203, generator=generator)
    layers = {name: network[int(name)] for name in ("1", "5")}
    found = moments(network, layers, rows, weights)
    for name, layer in layers.items():
        inputs = input_of(network, layer, rows).double()
        for k in range(2):
            mean, variance = weighted_moments(inputs, weights[k].double())
            torch.testing.assert_close(found[name][0][k], mean)
            torch.testing.assert_close(found[name][1][k], variance)


def test_distances_are_those_of_the_formulas(network, generator):
    known, pool = torch.randn(60, 1, 8, 8, generator=generator), 1 + 2 * torch.randn(80, 1, 8, 8, generator=generator)
    weight = torch.rand(80, generator=generator).double()
    table = compare_statistics(scenario_of(known, pool), convert_batchnorm(network), weight)
    row, layer = table["layers"][0], network[1]
    a, b = (input_of(network, layer, rows).double() for rows in (known, pool))
    for word, w in (("plain", torch.ones(80).double()), ("weighted", weight)):
        (m0, v0), (m, v) = weighted_moments(a, torch.ones(60).double()), weighted_moments(b, w)
        distance = math.sqrt(sum(((m - m0) ** 2 / (v0 + layer.eps)).tolist()) / 4)
        factor = math.exp(math.sqrt(sum(math.log(r) ** 2 for r in ((v + layer.eps) / (v0 + layer.eps)).tolist()) / 4))
        assert row[f"mean_{word}"] == pytest.approx(distance, rel=1e-6)
        assert row[f"variance_{word}"] == pytest.approx(factor, rel=1e-6)
    assert (table["part"], table["known"], table["members"]) == ("validation", 60, 80)
    assert [r["layer"] for r in table["layers"]] == ["1", "5"]
    assert row["channels"] == 4


def test_good_weights_bring_the_pool_home(network, generator):
    known = torch.randn(200, 1, 8, 8, generator=generator)
    pool = torch.cat(
        [torch.randn(100, 1, 8, 8, generator=generator), 5 + torch.randn(100, 1, 8, 8, generator=generator)]
    )
    weight = (torch.arange(200) < 100).double()
    for row in compare_statistics(scenario_of(known, pool), network, weight)["layers"]:
        assert row["mean_weighted"] < 0.3 < row["mean_plain"]
        assert row["mean_halves"] < 0.4


def test_without_a_validation_set_labels_are_the_known_rows(make):
    table = make(validation=False)
    found = compare_statistics(table.scenario, table.model, torch.ones(150))
    assert (found["part"], found["known"]) == ("labeled", 6)


def test_where_all_weights_are_0_nothing_is_said(run):
    row = compare_statistics(run.scenario, run.model, torch.zeros(150))["layers"][0]
    assert row["mean_weighted"] is None
    assert row["variance_weighted"] is None
    assert row["mean_plain"] is not None


def test_a_model_without_batch_norm_has_no_table(run):
    assert compare_statistics(run.scenario, nn.Sequential(nn.Flatten(), nn.Linear(64, 3)), torch.ones(150)) is None


class PerPixel(nn.Module):
    """Its batch norm sees pixels as examples."""

    def __init__(self):
        super().__init__()
        self.norm, self.head = nn.BatchNorm1d(8), nn.Linear(64, 3)

    def forward(self, x):
        return self.head(self.norm(x.reshape(-1, 8)).reshape(len(x), 64))


def test_a_layer_that_sees_something_else_than_examples_is_left_out(run):
    assert compare_statistics(run.scenario, PerPixel().eval(), torch.ones(150)) is None


def test_the_model_is_left_as_it_was(run):
    before = {k: v.clone() for k, v in run.model.state_dict().items()}
    run.model.train()
    compare_statistics(run.scenario, run.model, torch.ones(150))
    assert run.model.training
    run.model.eval()
    for name, value in run.model.state_dict().items():
        assert torch.equal(value, before[name])
    assert not any(module._forward_pre_hooks for module in run.model.modules())


def test_a_faraway_pool_keeps_its_digits():
    """|mean| / standard deviation of a thousand: a difference of squares around zero would have lost it."""
    generator = torch.Generator().manual_seed(3)
    layer = nn.BatchNorm1d(3)
    layer.running_mean.fill_(1000.0)
    model = nn.Sequential(layer, nn.Linear(3, 2)).eval()
    rows = 1000 + torch.randn(400, 3, generator=generator)
    variance = moments(model, {"0": layer}, rows, torch.ones(1, 400))["0"][1][0]
    torch.testing.assert_close(variance, rows.double().var(0, unbiased=False), rtol=1e-6, atol=0)
