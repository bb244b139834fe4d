"""``Result.judge``: verdicts on examples that were not in the pool."""

from __future__ import annotations

import numpy as np
import pytest

import wrssl
from wrssl.api import DataError


def scenario():
    random = np.random.default_rng(0)

    def part(n):
        y = np.tile([0, 1], n // 2)
        return (random.normal(size=(n, 3)) + 2.5 * y[:, None]).astype(np.float32), np.array(["no", "yes"])[y]

    pool = np.r_[part(150)[0], (random.normal(size=(150, 3)) - 6.0).astype(np.float32)]
    return wrssl.Scenario(part(60), pool, part(80)), part(200)[0], pool[150:]


@pytest.mark.parametrize("weights", ["wr", "prior", "none", "wr-cluster"])
def test_new_samples_get_a_table_before_and_after_loading(weights, tmp_path):
    data, own, foreign = scenario()
    result = wrssl.fit(data, weights=weights, steps=4, fallback=False, out=tmp_path / "RUN", progress=False)
    table = result.judge(own, ids=[f"row {n}" for n in range(len(own))])
    assert list(table.columns) == ["id", "label", "confidence", "ood_score", "verdict"]
    assert table["id"].tolist()[:2] == ["row 0", "row 1"]
    np.testing.assert_array_equal(table["label"], result.predict(own))
    np.testing.assert_allclose(table["confidence"], result.predict_proba(own).max(1), rtol=1e-5)
    assert table["ood_score"].between(0, 1).all()
    assert set(table["verdict"]) <= {"keep", "doubt", "drop"}
    back = wrssl.load(tmp_path / "RUN").judge(own, ids=table["id"].tolist())
    assert back.equals(table)
    if weights in ("wr", "prior"):
        assert (table["verdict"] == "drop").mean() <= 0.12
        assert (result.judge(foreign)["verdict"] == "drop").mean() >= 0.9


def test_the_rate_is_the_users():
    data, own, _ = scenario()
    dropped = []
    for rate in (0.0, 0.05, 0.4):
        result = wrssl.fit(data, weights="prior", steps=1, progress=False, false_drop_rate=rate)
        assert result.config["false_drop_rate"] == rate
        dropped.append([(t["verdict"] == "drop").mean() for t in (result.verdicts, result.judge(own))])
    assert dropped[0] == [0.0, 0.0]
    assert dropped[0][1] < dropped[1][1] < dropped[2][1]
    assert dropped[1][0] < dropped[2][0]


@pytest.mark.parametrize("rate", [-0.1, 0.6, float("nan")])
def test_a_rate_that_does_not_exist_is_refused(rate):
    with pytest.raises(wrssl.WRSSLError, match="false_drop_rate"):
        wrssl.fit(scenario()[0], steps=1, false_drop_rate=rate)


def test_other_shapes_are_one_sentence():
    result = wrssl.fit(scenario()[0], weights="none", steps=1, progress=False)
    with pytest.raises(DataError, match="shape"):
        result.judge(np.zeros((2, 5), np.float32))
