"""What the other weightings do in a training: L2RW, Meta-Weight-Net, DS3L and UASD."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import wrssl
from wrssl.config import FitConfig
from wrssl.training.assembly import assemble
from wrssl.training.effort import trial_seconds

RIVALS = ["l2rw", "mwn", "ds3l", "uasd"]


def learned(result, factor=0.5):
    """The loss has fallen, and so has that of the labels."""
    history = result.history
    assert history["loss"].iloc[-1] < factor * history["loss"].iloc[0]
    assert history["labeled"].iloc[-1] < factor * history["labeled"].iloc[0]
    return result.metrics["mean_weight_id"], result.metrics["mean_weight_ood"]


@pytest.mark.parametrize("seed", [0, 1])
def test_l2rw_prefers_members_of_the_classes(seed):
    """Mean images among the digits, Pseudo-Label: the confident ones pull along the validation gradient."""
    digits = wrssl.load_scenario("digits", ood="mean", ratio=0.5, seed=seed)
    options = {"weights": "l2rw", "weight_options": {"scope": "head"}, "lr": 3e-3}
    member, stranger = learned(wrssl.fit(digits, method="pl", steps=60, seed=seed, **options))
    assert member > 3 * stranger


@pytest.mark.parametrize("seed", [0, 1])
def test_ds3l_prefers_members_of_the_classes(seed):
    """The same digits; with a rate of V that suits a run of 80 steps instead of 200,000."""
    digits = wrssl.load_scenario("digits", ood="mean", ratio=0.5, seed=seed)
    options = {"weights": "ds3l", "weight_options": {"scope": "head", "meta_lr": 1e-2}, "lr": 3e-3}
    member, stranger = learned(wrssl.fit(digits, method="pl", steps=80, seed=seed, **options))
    assert member > 1.3 * stranger


@pytest.mark.parametrize("seed", [0, 1])
def test_uasd_prefers_members_of_the_classes(seed):
    """Points between the moons, where no prediction is certain."""
    moons = wrssl.load_scenario("moons", ood="boundary", ratio=0.5, seed=seed)
    result = wrssl.fit(moons, method="pl", weights="uasd", steps=200, seed=seed)
    member, stranger = learned(result)
    assert set(result.weights) == {0.0, 1.0}
    assert member > stranger + 0.2


@pytest.mark.parametrize("seed", [0, 1])
def test_meta_weight_net_tells_losses_apart(seed):
    """Nothing is said about members and strangers: on data as small as this, their losses are too much alike."""
    moons = wrssl.load_scenario("moons", ood="boundary", ratio=0.5, seed=seed)
    result = wrssl.fit(moons, method="vat", weights="mwn", steps=150, seed=seed)
    learned(result)
    assert np.ptp(result.weights) > 0.05
    assert len(np.unique(result.weights)) > 100


@pytest.mark.parametrize("weights", RIVALS)
def test_the_trial_steps_of_auto_leave_no_trace(weights, moons):
    """Neither in the network nor in what the weighting has learned, Adam's moments included."""
    own = wrssl.Scenario(labeled=moons.labeled, unlabeled=moons.unlabeled, validation=moons.validation)
    ends = []
    for tried in (True, False):
        main = assemble(own, FitConfig(method="pi", weights=weights, fallback=False)).main
        main.prepare_weighting()
        if tried:
            assert trial_seconds(main.trainer)[0] > 0
            assert not main.net.images
        trainer = main.trainer(12)
        trainer.run()
        ends.append({**trainer.net.module.state_dict(), **trainer.weighting.state_dict()})
    assert ends[0].keys() == ends[1].keys()
    for name, value in ends[0].items():
        assert torch.equal(value, ends[1][name]), name


def test_auto_takes_as_many_steps_as_the_pool_asks_for_and_trains_as_if_they_were_given(moons):
    own = wrssl.Scenario(labeled=moons.labeled, unlabeled=moons.unlabeled, validation=moons.validation)
    chosen = wrssl.fit(own, method="pi", weights="l2rw", steps="auto", seed=0)
    assert chosen.config["steps"] == 200
    fixed = wrssl.fit(own, method="pi", weights="l2rw", steps=200, seed=0)
    assert np.array_equal(chosen.weights, fixed.weights)
    for p, q in zip(chosen.model.state_dict().values(), fixed.model.state_dict().values(), strict=True):
        assert torch.equal(p, q)


@pytest.mark.parametrize("weights", RIVALS)
def test_the_seed_decides_and_the_global_generator_does_not(weights, moons, global_rng_untouched):
    one, same, other = (wrssl.fit(moons, method="pi", weights=weights, steps=12, seed=s).weights for s in (3, 3, 4))
    assert np.array_equal(one, same)
    assert not np.array_equal(one, other)


@pytest.mark.parametrize("weights", RIVALS)
def test_the_smallest_data_there_is(weights, moons):
    """Two labels, one member, two validation examples; the batch names the member twice."""
    x, y = moons.labeled
    rows = torch.tensor([int((y == k).nonzero()[0]) for k in (0, 1)])
    validation = (moons.validation[0][:2], moons.validation[1][:2])
    own = wrssl.Scenario(labeled=(x[rows], y[rows]), unlabeled=moons.unlabeled[:1], validation=validation)
    result = wrssl.fit(own, method="vat", weights=weights, steps=7)
    assert result.weights.shape == (1,)
    assert 0 <= result.weights[0] <= 1
    assert np.isfinite(result.history["loss"]).all()


@pytest.mark.parametrize("weights", RIVALS)
def test_neither_truth_nor_test_set_is_looked_at(weights, moons):
    blind = wrssl.Scenario(labeled=moons.labeled, unlabeled=moons.unlabeled, validation=moons.validation)
    blind.noise, blind.vat_epsilon = moons.noise, moons.vat_epsilon
    seen, unseen = (wrssl.fit(data, method="entmin", weights=weights, steps=12, seed=0) for data in (moons, blind))
    assert np.array_equal(seen.weights, unseen.weights)
