"""A step whose loss is not finite leaves no trace, is counted, and too many of them end the run with a sentence."""

from __future__ import annotations

import copy
import math

import numpy as np
import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode
from wrssl.training.guard import Guard
from wrssl.training.tally import Tally

import wrssl
from wrssl.api import DivergenceError
from wrssl.training.assembly import assemble
from wrssl.training.loop import Best
from wrssl.training.step import Outcome

METHODS = ["pl", "pi", "mt", "vat", "entmin", "uda", "fixmatch", "mixmatch"]
WEIGHTS = ["none", "prior", "wr", "wr-instance", "wr-cluster", "l2rw", "mwn", "ds3l", "uasd"]


def trainer(scenario, method="pl", weights="none", steps=10):
    made = assemble(
        scenario, model="mlp", method=method, weights=weights, bn="weighted", steps=steps, seed=0, gate=None,
        fallback=False, device="cpu", method_options=None, weight_options=None, batch_size=8, lr=None,
        budget="halves", head=None, threads=1, fast=True, false_drop_rate=0.05,
    )  # fmt: skip
    made.main.look_at_the_pool()
    return made.main.trainer(steps)


def everything(run):
    """What a step moves: parameters, running statistics, moments."""
    moments = [t for entry in run.optimizer.state_dict()["state"].values() for t in entry.values()]
    return copy.deepcopy([*tensors_of(run.net.module), *moments])


def tensors_of(network):
    return [t for name, t in network.state_dict().items() if "num_batches" not in name]


def same(one, other):
    return len(one) == len(other) and all(torch.equal(a, b) for a, b in zip(one, other, strict=True))


@pytest.mark.parametrize("part", ["x_l", "x_u"])
@pytest.mark.parametrize("method", [*METHODS, "supervised"])
def test_a_broken_step_leaves_network_and_optimiser_alone(method, part, blobs, explode):
    if method == "supervised" and part == "x_u":
        pytest.skip("it does not see the pool")
    run = trainer(blobs, method)
    explode([2], part)
    outcomes = [run.step(0), run.step(1)]
    before = everything(run)
    outcomes.append(run.step(2))
    after = everything(run)
    assert same(before, after)
    outcomes.append(run.step(3))
    assert [float(o.skipped) for o in outcomes] == [0, 0, 1, 0]
    assert not same(after, everything(run))
    networks = [run.net.module, *run.method.companions()]  # a teacher follows, and must not catch it either
    assert all(t.isfinite().all() for network in networks for t in tensors_of(network))


def test_the_steps_around_a_broken_one_are_the_usual_ones(blobs, explode):
    """Two runs that differ in what a broken step holds end alike."""
    results = []
    for value in (math.nan, math.inf):
        run = trainer(blobs, "pl")
        explode([1], value=value)
        for step in range(4):
            run.step(step)
        results.append(everything(run))
    assert same(*results)


@pytest.mark.parametrize("weights", WEIGHTS)
def test_no_weighting_learns_nonsense_from_a_broken_step(weights, blobs, explode):
    explode([0, 4, 5])
    result = wrssl.fit(blobs, "mlp", "pl", weights, steps=20, batch_size=8, fallback=False, progress=False)
    assert result.metrics["skipped_steps"] == 3
    assert result.history["skipped"].tolist()[:6] == [1, 0, 0, 0, 1, 1]
    assert np.isfinite(result.weights).all()
    assert ((result.weights >= 0) & (result.weights <= 1)).all()
    assert np.isfinite(result.predict_proba(blobs.unlabeled)).all()
    assert result.history[["mean_weight"]].notna().all().all()


def test_a_sound_run_skips_nothing(blobs):
    result = wrssl.fit(blobs, "mlp", "vat", "wr-cluster", steps=5, batch_size=8, progress=False)
    assert result.metrics["skipped_steps"] == 0
    assert result.history["skipped"].tolist() == [0] * 5


def test_twenty_in_a_row_end_the_run_and_it_can_be_resumed(blobs, explode, tmp_path, monkeypatch):
    options = {"model": "mlp", "method": "pl", "weights": "none", "steps": 100, "batch_size": 8, "progress": False}
    with monkeypatch.context():
        explode(range(31, 100))
        with pytest.raises(DivergenceError, match=r"step 55 .* in 24 steps in a row; lower lr \(it is 0\.\d+\)"):
            wrssl.fit(blobs, **options, out=tmp_path / "run")
    explode([])  # whatever it was, it is over
    with pytest.raises(wrssl.WRSSLError, match="not finished"):
        wrssl.load(tmp_path / "run")
    result = wrssl.fit(blobs, **options, out=tmp_path / "run", resume=True)
    assert np.isfinite(wrssl.load(tmp_path / "run").predict_proba(blobs.unlabeled)).all()
    assert len(result.verdicts) == 40


def test_nineteen_in_a_row_do_not(blobs, explode):
    explode(range(31, 50))
    result = wrssl.fit(blobs, "mlp", "pl", "none", steps=100, batch_size=8, progress=False)
    assert result.metrics["skipped_steps"] == 19


def test_a_short_run_does_not_return_an_untrained_network(blobs, explode):
    explode(range(3))
    with pytest.raises(DivergenceError, match="in a step; lower lr"):
        wrssl.fit(blobs, "mlp", "pl", "none", steps=3, batch_size=8, progress=False)


def outcome(skipped):
    loss = torch.tensor(math.nan if skipped else 2.0)
    return Outcome(loss, loss, loss, torch.tensor(1.0), skipped=torch.tensor(float(skipped)))


def test_the_tally_counts_across_rows_and_across_a_resume():
    tally = Tally()
    for skipped in (1, 0, 1, 1):
        tally.add(outcome(skipped))
    assert tally.skipped() == (3, 2)
    assert tally.mean("loss") == 2.0
    following = tally.following()
    resumed = Tally()
    resumed.load(following.to_json())
    for later in (following, resumed):
        assert later.skipped() == (0, 2)
        later.add(outcome(1))
        assert later.skipped() == (1, 3)
        assert later.mean("loss") is None
        later.add(outcome(0))
        assert later.following().skipped() == (0, 0)


class Reads(TorchDispatchMode):
    """Counts how often the host asks for a value."""

    number = 0

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        self.number += "local_scalar_dense" in str(function)
        return function(*args, **(kwargs or {}))


@pytest.mark.parametrize("value", [1.0, math.nan])
def test_the_host_waits_for_nothing(value):
    p = torch.ones(3, requires_grad=True)
    guard = Guard(torch.optim.Adam([p], lr=0.1, fused=True), [torch.nn.BatchNorm1d(3)])
    p.grad = torch.full((3,), value)
    with Reads() as reads:
        guard.begin()
        broken = guard.step(torch.ones(()))
    assert reads.number == 0
    assert bool(broken) is math.isnan(value)


@pytest.mark.parametrize("make", [lambda p: torch.optim.Adam(p, fused=True), torch.optim.SGD], ids=["fused", "plain"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize(
    ("gradient", "loss", "taken"), [(1.0, 1.0, True), (math.inf, 1.0, False), (1.0, math.inf, False)]
)
def test_loss_and_gradient_are_both_looked_at(make, dtype, gradient, loss, taken):
    p, unused = (torch.ones(3, requires_grad=True, dtype=dtype) for _ in range(2))
    p.grad = torch.tensor([0.5, gradient, 0.5], dtype=dtype)
    skipped = Guard(make([p, unused]), []).step(torch.tensor(loss))
    assert bool(skipped) is not taken
    assert bool((p != 1).all()) is taken


def test_a_gradient_whose_square_overflows_is_not_taken():
    """Adam would keep an infinite second moment, and never move that parameter again."""
    p = torch.ones(3, requires_grad=True)
    optimizer = torch.optim.Adam([p], fused=True)
    p.grad = torch.full((3,), 1e20)
    assert bool(Guard(optimizer, []).step(torch.ones(())))
    p.grad = torch.ones(3)
    assert not bool(Guard(optimizer, []).step(torch.ones(())))
    assert bool((p < 1).all())


def test_a_network_that_says_nothing_is_never_the_best():
    best, model = Best(), torch.nn.Linear(1, 1)
    best.offer(1, 0.9, math.nan, model)
    assert not best.state
    best.offer(2, 0.5, 0.7, model)
    best.offer(3, 0.5, math.nan, model)
    assert best.step == 2
