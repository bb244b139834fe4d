"""The weights that Meta-Weight-Net and DS3L report: the whole pool judged anew, by the network that is returned."""

from __future__ import annotations

import copy

import numpy as np
import pytest
import torch
from torch import nn
from wrssl.training.appraise import appraise, judges_anew

import wrssl
from wrssl.data import prepare
from wrssl.weighting import WEIGHTINGS


@pytest.fixture
def watched(monkeypatch):
    """Every appraisal: its trainer, and what it found and left behind."""
    found = []

    def state(trainer):
        return copy.deepcopy(trainer.net.module.state_dict()), dict(trainer.net.images), trainer.method.state_dict()

    def watch(trainer):
        before = copy.deepcopy(state(trainer))
        weights = appraise(trainer)
        found.append((trainer, before, state(trainer)))
        return weights

    monkeypatch.setattr("wrssl.training.judge.appraise", watch)
    return found


def by_hand(weights, method, model, pool, phi):
    """V of the loss, or of the prediction, in NumPy."""
    with torch.no_grad():
        p = model.eval()(prepare(pool)).double().softmax(1).numpy()
    if weights == "ds3l":
        a = p
    elif method == "entmin":
        a = -(p * np.log(p)).sum(1, keepdims=True)
    else:
        a = -np.log(p.max(1, keepdims=True))  # Pseudo-Label with a threshold of 0
    W1, b1, W2, b2 = (x.detach().double().numpy() for x in phi)
    return 1 / (1 + np.exp(-(np.maximum(a @ W1.T + b1, 0) @ W2.T + b2)[:, 0]))


@pytest.mark.parametrize("bn", ["weighted", "batch"])
@pytest.mark.parametrize("method", ["entmin", "pl"])
@pytest.mark.parametrize("weights", ["mwn", "ds3l"])
def test_the_weights_are_those_of_v_for_the_returned_model(weights, method, bn, moons, watched):
    options = {"threshold": 0.0} if method == "pl" else {}
    fast = {"meta_lr": 0.02 if weights == "mwn" else 0.003}
    result = wrssl.fit(
        moons, method=method, weights=weights, method_options=options, weight_options=fast, bn=bn, steps=25, seed=0
    )
    ((trainer, _, _),) = watched
    phi = trainer.weighting.net.parameters
    want = by_hand(weights, method, result.model, moons.unlabeled, phi)
    np.testing.assert_allclose(result.weights, want, rtol=0, atol=1e-5)
    assert np.ptp(want) > 1e-3
    last_visit = trainer.weighting.weights(torch.arange(len(want))).numpy()
    assert np.abs(last_visit - want).max() > 1e-3  # what the table holds would have been noticed
    assert np.array_equal(result.verdicts["weight"].to_numpy(), result.weights)


@pytest.mark.parametrize("method", [name for name in wrssl.list_methods() if name != "supervised"])
def test_judging_changes_nothing_and_is_not_counted(method, moons, watched):
    """Parameters, buffers, what the method remembers, and the number of images."""
    wrssl.fit(moons, method=method, weights="mwn", bn="batch", steps=3, seed=0)
    ((_, (model, images, kept), (model_after, images_after, kept_after)),) = watched
    assert images == images_after
    for before, after in ((model, model_after), (kept, kept_after)):
        assert before.keys() == after.keys()
        for name, value in before.items():
            assert torch.equal(value, after[name]), name


@pytest.mark.parametrize("method", [name for name in wrssl.list_methods() if name != "supervised"])
def test_a_single_member_can_be_left_for_the_last_batch(method, moons):
    own = wrssl.Scenario(labeled=moons.labeled, unlabeled=moons.unlabeled[:101], validation=moons.validation)
    for weights in ("mwn", "ds3l"):
        assert wrssl.fit(own, method=method, weights=weights, steps=2).weights.shape == (101,)


@pytest.mark.parametrize("method", [name for name in wrssl.list_methods() if name != "supervised"])
def test_dropout_is_off_and_the_global_generator_is_left_alone(method, moons, global_rng_untouched):
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        model = nn.Sequential(nn.Linear(2, 16), nn.ReLU(), nn.Dropout(0.5), nn.Linear(16, 2))
    one, same = (wrssl.fit(moons, model=model, method=method, weights="mwn", steps=3).weights for _ in range(2))
    assert np.array_equal(one, same)


def test_only_who_judges_by_loss_and_prediction_judges_anew():
    anew = [name for name in wrssl.list_weightings() if judges_anew(WEIGHTINGS.create(name))]
    assert anew == ["mwn", "ds3l"]
