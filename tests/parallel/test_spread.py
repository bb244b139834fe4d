"""Passes that several processes share equal those of one."""

from __future__ import annotations

import copy

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from wrssl.api import Pass
from wrssl.models import split
from wrssl.norm import convert_batchnorm
from wrssl.parallel import Devices, own_rows
from wrssl.parallel.group import LostProcessError
from wrssl.training.passes import PolicyNet


@pytest.mark.parametrize("size", [0, 1, 5, 12])
@pytest.mark.parametrize("processes", [1, 2, 5])
def test_every_row_belongs_to_one_process_and_parts_are_equal_up_to_one(size, processes):
    parts = [range(size)[own_rows(size, rank, processes)] for rank in range(processes)]
    assert [row for part in parts for row in part] == list(range(size))
    assert max(map(len, parts)) - min(map(len, parts)) <= 1


def network() -> nn.Module:
    generator = torch.Generator().manual_seed(0)
    model = nn.Sequential(nn.Linear(4, 6), nn.BatchNorm1d(6), nn.Tanh(), nn.Linear(6, 5), nn.BatchNorm1d(5), nn.ReLU())
    model = convert_batchnorm(nn.Sequential(*model, nn.Linear(5, 3))).double().train()
    with torch.no_grad():
        for p in model.parameters():
            p.copy_(torch.randn(p.shape, generator=generator, dtype=torch.float64) * 0.5 + (p.dim() == 1))
    return model


def work(model, group, rows, kind, policy):
    """Loss, its gradients by input and parameters, and the buffers, from a pass over ``rows`` rows."""
    generator = torch.Generator().manual_seed(1)
    x = torch.randn(rows, 4, generator=generator, dtype=torch.float64).requires_grad_()
    y, w = torch.arange(rows) % 3, torch.rand(rows, generator=generator, dtype=torch.float64)
    net = PolicyNet(split(model, x.detach()), policy)
    net.use(Devices(group))
    net.weights = w
    loss = (w * F.cross_entropy(net.head(net.features(x, kind)), y, reduction="none")).mean()
    loss.backward()
    if group is not None:
        group.add_gradients([p for p in net.parts.backbone.parameters() if p.requires_grad])
    gradients = {name: p.grad for name, p in model.named_parameters()}
    return {"loss": loss.detach(), "x": x.grad, **gradients, **dict(model.named_buffers())}


@pytest.mark.parametrize("count", [2, 3])
@pytest.mark.parametrize("rows", [2, 7, 12])
@pytest.mark.parametrize(("kind", "policy"), [(Pass.LABELED, "batch"), (Pass.UNLABELED, "weighted"),
                                              (Pass.PERTURBED, "weighted"), (Pass.UNLABELED, "eval")])  # fmt: skip
def test_a_shared_pass_equals_one_of_a_single_process(count, rows, kind, policy, processes):
    model = network()
    alone = work(copy.deepcopy(model), None, rows, kind, policy)
    for found in processes(count, lambda group: work(copy.deepcopy(model), group, rows, kind, policy)):
        assert found.keys() == alone.keys()
        for name, value in alone.items():
            torch.testing.assert_close(found[name], value, atol=1e-12, rtol=1e-11, msg=lambda m, n=name: f"{n}: {m}")


def test_a_missing_gradient_counts_as_zero(processes):
    def own(group):
        p, q = torch.ones(2, requires_grad=True), torch.ones(3, requires_grad=True)
        if group.leads:
            p.grad = torch.tensor([1.0, 2.0])
        q.grad = torch.full((3,), group.rank + 1.0)
        group.add_gradients([p, q])
        return p.grad.tolist(), q.grad.tolist()

    assert processes(2, own) == [([1.0, 2.0], [3.0] * 3)] * 2


def test_one_flag_is_enough_and_the_leader_s_word_counts(processes):
    assert processes(3, lambda g: g.largest(15 * (g.rank == 2))) == [15] * 3
    assert processes(3, lambda g: g.largest(0)) == [0] * 3
    assert processes(3, lambda g: g.from_leader({"steps": g.rank + 7})) == [{"steps": 7}] * 3


def test_a_lost_process_is_one_sentence(processes):
    class Broken:
        global_rank, world_size = 0, 2

        def all_reduce(self, data, group=None, reduce_op="mean"):
            raise RuntimeError("Connection closed by peer")

    from wrssl.parallel import Group

    with pytest.raises(LostProcessError, match=r"Another process .* has ended.*--resume"):
        Group(Broken()).largest(0)
