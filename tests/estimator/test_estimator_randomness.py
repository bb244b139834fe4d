"""random_state as scikit-learn understands it, and silence."""

from __future__ import annotations

import numpy as np
import pytest

from wrssl.estimator import WRSSLClassifier
from wrssl.estimator.classifier import draw_seed


def answers(clouds, random_state) -> np.ndarray:
    X, y, _ = clouds
    return WRSSLClassifier(weights="none", steps=4, random_state=random_state).fit(X, y).predict_proba(X)


def test_a_number_repeats_the_fit_and_is_the_seed(clouds, global_rng_untouched):
    X, y, _ = clouds
    model = WRSSLClassifier(weights="none", steps=4, random_state=3)
    first = model.fit(X, y).predict_proba(X)
    assert np.array_equal(first, model.fit(X, y).predict_proba(X))
    assert model.result_.config["seed"] == 3
    assert not np.array_equal(first, answers(clouds, 4))


def test_a_random_state_goes_on_with_each_fit(clouds, global_rng_untouched):
    source = np.random.RandomState(0)
    first, second = answers(clouds, source), answers(clouds, source)
    assert not np.array_equal(first, second)
    assert np.array_equal(first, answers(clouds, np.random.RandomState(0)))


def test_none_is_numpys_global_state():
    before = np.random.get_state()  # noqa: NPY002
    try:
        np.random.seed(5)  # noqa: NPY002
        drawn = draw_seed(None), draw_seed(None)
        np.random.seed(5)  # noqa: NPY002
        assert (draw_seed(None), draw_seed(None)) == drawn
        assert drawn[0] != drawn[1]
    finally:
        np.random.set_state(before)  # noqa: NPY002


@pytest.mark.parametrize("wrong", [-1, "zero", 1.5])
def test_what_is_no_random_state(wrong):
    with pytest.raises(ValueError, match=r"[Ss]eed|random_state|RandomState"):
        draw_seed(wrong)


def test_silent_unless_asked(clouds, capfd):
    X, y, _ = clouds
    model = WRSSLClassifier(random_state=0, method="supervised")
    model.fit(X, y)
    assert capfd.readouterr() == ("", "")
    model.set_params(verbose=1).fit(X, y)
    printed = capfd.readouterr()
    assert printed.out == ""
    assert "steps: 200" in printed.err
