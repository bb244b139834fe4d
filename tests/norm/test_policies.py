"""The table of batch statistics, cell by cell: which statistics a pass uses, and whether it updates the buffers."""

from __future__ import annotations

import copy

import pytest
import torch
from torch import nn

from wrssl.api import OptionError, Pass
from wrssl.norm import convert_batchnorm, policy_table, statistics, weighted_layers

# The table of the design, written out a second time: (statistics, updates).
TABLE = {
    Pass.LABELED: dict.fromkeys(("batch", "frozen", "eval", "weighted"), ("batch", True)),
    Pass.UNLABELED: {
        "batch": ("batch", True),
        "frozen": ("batch", False),
        "eval": ("running", False),
        "weighted": ("weighted", True),
    },
    Pass.PERTURBED: {
        "batch": ("batch", False),
        "frozen": ("batch", False),
        "eval": ("running", False),
        "weighted": ("weighted", False),
    },
    Pass.LOOKAHEAD: dict.fromkeys(("batch", "frozen", "eval", "weighted"), ("batch", False)),
    Pass.VALIDATION: dict.fromkeys(("batch", "frozen", "eval", "weighted"), ("batch", False)),
    Pass.EVALUATION: dict.fromkeys(("batch", "frozen", "eval", "weighted"), ("running", False)),
}
TABLE[Pass.TEACHER] = TABLE[Pass.UNLABELED]
CELLS = [(kind, policy, *cell) for kind, row in TABLE.items() for policy, cell in row.items()]


def expected(x, layer, source, w):
    """The normalized batch, by hand."""
    if source == "batch":
        mean, var = x.mean(0), x.var(0, unbiased=False)
    elif source == "running":
        mean, var = layer.running_mean, layer.running_var
    else:
        share = (w / w.sum()).unsqueeze(1)
        mean = (share * x).sum(0)
        var = (share * (x - mean) ** 2).sum(0)
    return (x - mean) / (var + layer.eps).sqrt()


@pytest.mark.parametrize(("kind", "policy", "source", "updates"), CELLS, ids=lambda v: getattr(v, "value", str(v)))
def test_cell(kind, policy, source, updates, generator):
    model = convert_batchnorm(nn.Sequential(nn.BatchNorm1d(3), nn.Linear(3, 2))).double().train()
    layer = model[0]
    layer.running_mean.copy_(torch.tensor([0.5, -0.5, 1.0]))
    layer.running_var.copy_(torch.tensor([2.0, 3.0, 4.0]))
    x = torch.randn(10, 3, generator=generator, dtype=torch.float64)
    w = torch.rand(10, generator=generator, dtype=torch.float64)
    before = copy.deepcopy(model.state_dict())
    want = expected(x, layer, source, w)
    with statistics([layer], *policy_table(policy)[kind], w):
        torch.testing.assert_close(layer(x), want, atol=1e-12, rtol=0)
    moved = {k for k, v in model.state_dict().items() if not torch.equal(v, before[k])}
    assert moved == ({"0.running_mean", "0.running_var", "0.num_batches_tracked"} if updates else set())


def test_the_teacher_updates_its_own_buffers_only(generator):
    model = convert_batchnorm(nn.Sequential(nn.BatchNorm1d(3), nn.Linear(3, 2)))
    teacher = copy.deepcopy(model)
    x = torch.randn(10, 3, generator=generator)
    with statistics(weighted_layers(teacher), *policy_table("batch")[Pass.TEACHER], None):
        teacher(x)
    assert torch.equal(model[0].running_mean, torch.zeros(3))
    assert not torch.equal(teacher[0].running_mean, torch.zeros(3))


def test_a_pass_with_running_statistics_can_be_differentiated_after_an_update(generator):
    """Policy eval: the unlabeled pass reads the buffers, the labeled pass updates them, then comes backward."""
    model = convert_batchnorm(nn.Sequential(nn.Linear(3, 3), nn.BatchNorm1d(3), nn.Linear(3, 2)))
    x, u = torch.randn(10, 3, generator=generator), torch.randn(10, 3, generator=generator)
    table, layers = policy_table("eval"), weighted_layers(model)
    with statistics(layers, *table[Pass.UNLABELED], None):
        loss = model(u).square().sum()
    with statistics(layers, *table[Pass.LABELED], None):
        (loss + model(x).square().sum()).backward()
    assert torch.isfinite(model[0].weight.grad).all()


def test_an_unknown_policy_lists_the_known_ones():
    with pytest.raises(OptionError, match="batch, frozen, eval, weighted"):
        policy_table("layer")
