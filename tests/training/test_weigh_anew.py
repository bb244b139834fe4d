"""The weights that Meta-Weight-Net and DS3L report: the whole pool weighed anew, with the network that is returned."""

from __future__ import annotations

import copy

import numpy as np
import pytest
import torch
from torch import nn

import wrssl
from wrssl.api import BatchWeights, PredictionWeighting
from wrssl.data import prepare
from wrssl.registry import WEIGHTINGS
from wrssl.training import Callback
from wrssl.training.judge import weigh_anew

USING_THE_POOL = [name for name in wrssl.list_methods() if name != "supervised"]


class Watch(Callback):
    """Keeps the trainer, and its counters and the method's memory as they are when training ends."""

    def on_end(self, trainer):
        self.trainer = trainer
        self.images, self.kept = dict(trainer.net.images), copy.deepcopy(trainer.method.state_dict())


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
def test_the_weights_are_those_of_v_for_the_returned_model(weights, method, bn, moons):
    options = {"threshold": 0.0} if method == "pl" else {}
    fast, watch = {"meta_lr": 0.02 if weights == "mwn" else 0.003}, Watch()
    result = wrssl.fit(
        moons, method=method, weights=weights, method_options=options, weight_options=fast, bn=bn, steps=25, seed=0,
        callbacks=[watch],
    )  # fmt: skip
    weighting = watch.trainer.weighting
    want = by_hand(weights, method, result.model, moons.unlabeled, weighting.net.parameters)
    np.testing.assert_allclose(result.weights, want, rtol=0, atol=1e-5)
    assert np.ptp(want) > 1e-3
    last_visit = weighting.batch(torch.arange(len(want))).weight.numpy()
    assert np.abs(last_visit - want).max() > 1e-3  # what the table holds would have been noticed
    assert np.array_equal(result.verdicts["weight"].to_numpy(), result.weights)


@pytest.mark.parametrize("method", USING_THE_POOL)
def test_judging_changes_nothing_and_is_not_counted(method, moons):
    """Parameters, buffers, what the method remembers, and the number of images; a second time gives the same."""
    watch = Watch()
    result = wrssl.fit(moons, method=method, weights="mwn", bn="batch", steps=3, seed=0, callbacks=[watch])
    trainer = watch.trainer
    for _ in range(2):
        assert dict(trainer.net.images) == watch.images
        model, kept = trainer.net.module.state_dict(), trainer.method.state_dict()
        for before, after in ((trainer.best.state, model), (watch.kept, kept)):
            assert before.keys() == after.keys()
            for name, value in before.items():
                assert torch.equal(value, after[name]), name
        assert np.array_equal(weigh_anew(trainer, trainer.weighting), result.weights)
    assert result.metrics["images"] == {kind.value: count for kind, count in watch.images.items()}


@pytest.mark.parametrize("method", USING_THE_POOL)
def test_a_single_member_can_be_left_for_the_last_batch(method, moons):
    own = wrssl.Scenario(labeled=moons.labeled, unlabeled=moons.unlabeled[:101], validation=moons.validation)
    for weights in ("mwn", "ds3l"):
        assert wrssl.fit(own, method=method, weights=weights, steps=2).weights.shape == (101,)


@pytest.mark.parametrize("method", USING_THE_POOL)
def test_dropout_is_off_and_the_global_generator_is_left_alone(method, moons, global_rng_untouched):
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        model = nn.Sequential(nn.Linear(2, 16), nn.ReLU(), nn.Dropout(0.5), nn.Linear(16, 2))
    one, same = (wrssl.fit(moons, model=model, method=method, weights="mwn", steps=3).weights for _ in range(2))
    assert np.array_equal(one, same)


def test_only_weightings_by_loss_and_prediction_weigh_anew():
    names = wrssl.list_weightings()
    anew = [name for name in names if isinstance(WEIGHTINGS.create(name), PredictionWeighting)]
    assert anew == ["mwn", "ds3l"]


def test_a_weighting_from_outside_weighs_the_pool_anew_too(moons):
    """It is told the losses and predictions of each batch, and at the end those of the whole pool."""

    class Confidence(PredictionWeighting):
        summary = "for this file"

        def setup(self, pool):
            self.table = torch.ones(pool.size)

        def batch(self, index):
            return BatchWeights(self.table[index])

        def observe(self, index, losses, probabilities):
            assert losses.shape == (len(index),)
            self.table[index] = self.weigh(losses, probabilities)

        def weigh(self, losses, probabilities):
            return probabilities.max(1).values

    watch = Watch()
    with WEIGHTINGS.isolated():
        WEIGHTINGS.register("confidence")(Confidence)
        result = wrssl.fit(moons, method="entmin", weights="confidence", steps=5, callbacks=[watch])
    np.testing.assert_allclose(result.weights, result.predict_proba(moons.unlabeled).max(1), rtol=0, atol=1e-5)
    assert watch.trainer.weighting.table.min() < 1
    assert np.abs(watch.trainer.weighting.table.numpy() - result.weights).max() > 1e-3
