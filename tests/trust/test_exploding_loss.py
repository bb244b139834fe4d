"""A step whose loss is not finite leaves no trace, is counted, and too many of them end the run with a sentence."""

from __future__ import annotations

import copy
import math

import numpy as np
import pytest
import torch

import wrssl
from wrssl.api import DivergenceError
from wrssl.config import FitConfig
from wrssl.training import assemble

METHODS = ["pl", "pi", "mt", "vat", "entmin", "uda", "fixmatch", "mixmatch"]
WEIGHTS = ["none", "prior", "wr", "wr-instance", "wr-cluster", "l2rw", "mwn", "ds3l", "uasd"]


def trainer(scenario, method="pl", broken=None):
    """A trainer before its first step; ``broken`` is an ``Explosion``."""
    config = FitConfig("mlp", method, "none", steps=10, fallback=False, device="cpu", batch_size=8, threads=1)
    main = assemble(scenario, config).main
    main.prepare_weighting()
    run = main.trainer(10)
    if broken is not None:
        broken.on_start(run)
    return run


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
def test_a_broken_step_leaves_network_and_optimizer_alone(method, part, blobs, explode):
    if method == "supervised" and part == "x_u":
        pytest.skip("it does not see the pool")
    run = trainer(blobs, method, explode([2], part))
    outcomes = [run.step(0), run.step(1)]
    before = everything(run)
    outcomes.append(run.step(2))
    after = everything(run)
    assert same(before, after)
    outcomes.append(run.step(3))
    assert [float(o.skipped) for o in outcomes] == [0, 0, 1, 0]
    assert not same(after, everything(run))
    networks = [run.net.module, *run.method.networks()]  # a teacher follows, and must not catch it either
    assert all(t.isfinite().all() for network in networks for t in tensors_of(network))


def test_the_steps_around_a_broken_one_are_the_usual_ones(blobs, explode):
    """Two runs that differ in what a broken step holds end alike."""
    results = []
    for value in (math.nan, math.inf):
        run = trainer(blobs, "pl", explode([1], value=value))
        for step in range(4):
            run.step(step)
        results.append(everything(run))
    assert same(*results)


@pytest.mark.parametrize("weights", WEIGHTS)
def test_no_weighting_learns_nonsense_from_a_broken_step(weights, blobs, explode):
    options = {"steps": 20, "batch_size": 8, "fallback": False, "progress": False}
    result = wrssl.fit(blobs, "mlp", "pl", weights, **options, callbacks=[explode([0, 4, 5])])
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


def test_twenty_in_a_row_end_the_run_and_it_can_be_resumed(blobs, explode, tmp_path):
    options = {"model": "mlp", "method": "pl", "weights": "none", "steps": 100, "batch_size": 8, "progress": False}
    with pytest.raises(DivergenceError, match=r"step 55 .* in 24 steps in a row; lower lr \(it is 0\.\d+\)"):
        wrssl.fit(blobs, **options, out=tmp_path / "run", callbacks=[explode(range(31, 100))])
    with pytest.raises(wrssl.WRSSLError, match="not finished"):
        wrssl.load(tmp_path / "run")
    result = wrssl.fit(blobs, **options, out=tmp_path / "run", resume=True)
    assert np.isfinite(wrssl.load(tmp_path / "run").predict_proba(blobs.unlabeled)).all()
    assert len(result.verdicts) == 40


def test_nineteen_in_a_row_do_not(blobs, explode):
    broken = explode(range(31, 50))
    result = wrssl.fit(blobs, "mlp", "pl", "none", steps=100, batch_size=8, progress=False, callbacks=[broken])
    assert result.metrics["skipped_steps"] == 19


def test_a_short_run_does_not_return_an_untrained_network(blobs, explode):
    with pytest.raises(DivergenceError, match="in a step; lower lr"):
        wrssl.fit(blobs, "mlp", "pl", "none", steps=3, batch_size=8, progress=False, callbacks=[explode(range(3))])
