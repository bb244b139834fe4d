"""An audit says what its numbers say."""

from __future__ import annotations

import json

import numpy as np
import pytest

import wrssl
from wrssl.api import OptionError
from wrssl.auditing.answer import Audit, advice_for
from wrssl.evaluate import Interval

ZERO = Interval(0.0, -0.1, 0.1)


@pytest.mark.parametrize(
    ("plain", "robust", "words"),
    [
        (Interval(-0.1, -0.15, -0.05), Interval(0.05, 0.02, 0.08), "robust training"),
        (Interval(0.06, 0.03, 0.09), Interval(0.05, 0.02, 0.08), "not needed"),
        (Interval(0.06, 0.03, 0.09), Interval(0.01, -0.02, 0.04), "as it is"),
        (Interval(-0.1, -0.15, -0.05), Interval(-0.05, -0.08, -0.02), "leave it out"),
        (Interval(-0.1, -0.15, -0.05), Interval(0.0, -0.02, 0.02), "never train on it without weights"),
        (Interval(0.001, -0.004, 0.006), Interval(0.001, -0.004, 0.006), "does not matter"),
        (ZERO, ZERO, "more labels"),
    ],
)
def test_advice(plain, robust, words):
    assert words in advice_for(plain, robust)


def test_the_sentence_and_the_object_hold_the_numbers():
    gap, gain = Interval(-0.123, -0.2, -0.046), Interval(0.031, 0.01, 0.052)
    accuracies = {"supervised": [0.8, 0.9], "plain": [0.7, 0.75], "robust": [0.85, 0.9]}
    found = Audit("hurts", gap, gain, accuracies, 0.48, "use it.", 200)
    for words in ("hurts", "loses 12.3 points", "-20.0 to -4.6", "+3.1", "48 %", "use it."):
        assert words in found.sentence
    flat = json.loads(json.dumps(found.to_json()))
    assert (flat["difference"], flat["ci_low"], flat["ci_high"]) == (-0.123, -0.2, -0.046)
    assert (flat["answer"], flat["foreign_share"], flat["advice"]) == ("hurts", 0.48, "use it.")
    assert flat["supervised_accuracy"] == pytest.approx(0.85)
    assert flat["repeats"] == 2
    tiny = Interval(-1e-9, -0.1, 0.1)
    unknown = Audit("neutral", tiny, tiny, accuracies, None, "wait.", 200)
    assert "-0.0" not in unknown.sentence
    assert "cannot be told" in unknown.sentence
    assert "+0.0 points" in unknown.sentence


def blobs(shift, seed=0):
    """Two classes apart in the first coordinate; the pool is one of them, or far away."""
    random = np.random.default_rng(seed)
    y = np.tile([0, 1], 15)
    x = random.normal(size=(30, 2)) + 2.0 * y[:, None]
    pool = random.normal(size=(200, 2)) + 2.0 * random.integers(0, 2, (200, 1)) + shift
    return wrssl.Scenario((x.astype(np.float32), y), pool.astype(np.float32))


def test_an_audit_from_end_to_end():
    found = wrssl.audit(blobs(0.0), steps=8, repeats=2, progress=False)
    assert found.answer in ("helps", "hurts", "neutral")
    assert found.difference.low <= found.difference.mean <= found.difference.high
    assert {name: len(values) for name, values in found.accuracies.items()} == dict.fromkeys(
        ("supervised", "plain", "robust"), 2
    )
    gap = np.subtract(found.accuracies["plain"], found.accuracies["supervised"]).mean()
    assert found.difference.mean == pytest.approx(gap)
    again = wrssl.audit(blobs(0.0), steps=8, repeats=2, progress=False)
    assert again.to_json() == found.to_json()


def test_a_foreign_pool_is_seen():
    assert wrssl.audit(blobs(30.0), steps=3, repeats=2, progress=False).foreign_share > 0.9


def test_one_repetition_is_refused():
    with pytest.raises(OptionError, match="repeats"):
        wrssl.audit(blobs(0.0), repeats=1)
