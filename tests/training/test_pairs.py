"""Every method with every weighting: it runs, or says in one sentence why not."""

from __future__ import annotations

import numpy as np
import pytest

import wrssl
from wrssl.registry import WEIGHTINGS

# Except for wr, which one gets without asking.
LEARNED = ("wr-instance", "wr-cluster", "prior", "l2rw", "mwn", "ds3l", "uasd")
REFUSED = {("supervised", weights) for weights in LEARNED}


def is_one_sentence(text):
    return text.endswith(".") and ". " not in text and "\n" not in text and len(text) < 250


@pytest.mark.parametrize("method", wrssl.list_methods())
def test_every_weighting_runs_with_equal_steps_and_images(method, moons):
    images = {}
    for weights in wrssl.list_weightings():
        if (method, weights) in REFUSED:
            with pytest.raises(wrssl.WRSSLError) as refused:
                wrssl.fit(moons, method=method, weights=weights, steps=2, seed=0)
            assert is_one_sentence(str(refused.value)), refused.value
            continue
        result = wrssl.fit(moons, method=method, weights=weights, steps=2, seed=0, fallback=False)
        assert result.metrics["optimizer_steps"] == 2, weights
        assert result.weights.shape == (len(moons.unlabeled),), weights
        assert ((result.weights >= 0) & (result.weights <= 1)).all(), weights
        assert np.isfinite(result.history["loss"]).all(), weights
        images[weights] = result.metrics["images_forwarded"]
    assert len(images) >= 3
    assert len(set(images.values())) == 1, images


@pytest.mark.parametrize("weights", [name for name in wrssl.list_weightings() if name not in ("none", "oracle")])
@pytest.mark.parametrize("method", ["pl", "mixmatch"])
def test_every_learned_weighting_goes_without_a_validation_set(method, weights, moons):
    own = wrssl.Scenario(labeled=moons.labeled, unlabeled=moons.unlabeled, test=moons.test)
    result = wrssl.fit(own, method=method, weights=weights, steps=8, seed=0)
    assert ((result.weights >= 0) & (result.weights <= 1)).all()
    assert np.isfinite(result.history["loss"]).all()
    assert result.metrics["val_accuracy"] is None


@pytest.mark.parametrize("weights", ["wr-instance", "wr-cluster", "l2rw", "mwn", "ds3l"])
@pytest.mark.parametrize("scope", ["head", "network"])
@pytest.mark.parametrize("bn", ["frozen", "eval"])
def test_every_scope_runs_under_the_other_policies(weights, scope, bn, moons):
    options = {"scope": scope, **({"L": 1} if weights.startswith("wr") else {})}
    result = wrssl.fit(moons, method="vat", weights=weights, weight_options=options, bn=bn, steps=2, seed=0)
    assert np.ptp(result.weights) > 0
    assert np.isfinite(result.history["loss"]).all()


@pytest.mark.parametrize("weights", ["l2rw", "mwn", "ds3l", "wr-instance", "wr-cluster"])
def test_a_scope_that_does_not_exist_is_one_sentence(weights):
    with pytest.raises(wrssl.WRSSLError, match="scope") as refused:
        WEIGHTINGS.create(weights, {"scope": "body"})
    assert is_one_sentence(str(refused.value))
