"""Judging in parts gives what judging at once gives; metrics are what the table and the history say."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from sklearn.metrics import average_precision_score, roc_auc_score, roc_curve

import wrssl
from wrssl.evaluate import is_ood
from wrssl.registry import WEIGHTINGS
from wrssl.training.judge import final_weights


@pytest.mark.parametrize("chunk", [1, 7, 30, 10_000])
def test_final_weights_in_parts(chunk, monkeypatch):
    monkeypatch.setattr("wrssl.training.judge.CHUNK", chunk)
    weighting = WEIGHTINGS.create("wr-instance")
    weighting.table = torch.rand(30, generator=torch.Generator().manual_seed(0))
    weights = final_weights(weighting, 30)
    assert weights.dtype == np.float64
    assert np.array_equal(weights, weighting.table.double().numpy())


@pytest.mark.parametrize("weights", ["wr", "wr-cluster", "none"])
def test_the_verdicts_do_not_depend_on_the_size_of_the_parts(weights, moons, monkeypatch):
    whole = wrssl.fit(moons, weights=weights, steps=7)
    for chunk in (64, 500):
        monkeypatch.setattr("wrssl.training.judge.CHUNK", chunk)
        parts = wrssl.fit(moons, weights=weights, steps=7)
        assert np.array_equal(parts.weights, whole.weights)
        for name, column in whole.verdicts.items():
            if column.dtype.kind == "f":  # the last bit of a logit may depend on the rows beside it
                np.testing.assert_allclose(parts.verdicts[name], column, rtol=1e-6, atol=1e-3 * (name == "ood_score"))
            else:
                assert parts.verdicts[name].equals(column), name
        assert parts.metrics["test_accuracy"] == whole.metrics["test_accuracy"]


def fpr95(positive, score):
    """The first point of scikit-learn's curve that has caught 95 %."""
    wrong, caught, _ = roc_curve(positive, score, drop_intermediate=False)
    return wrong[caught >= 0.95 - 1e-9][0]


@pytest.mark.parametrize("weights", ["wr", "wr-instance", "none"])
def test_pool_metrics_follow_from_the_table_and_the_truth(weights, moons):
    """ood_score should be high where a member is foreign, a weight where it belongs."""
    options = {"weight_options": {"L": 1}} if weights == "wr-instance" else {}
    result = wrssl.fit(moons, method="entmin", weights=weights, steps=20, seed=0, fallback=False, **options)
    foreign, verdicts, metrics = is_ood(moons).numpy(), result.verdicts, result.metrics
    for what, score, positive in (("ood", verdicts["ood_score"], foreign), ("weight", result.weights, ~foreign)):
        assert metrics[f"{what}_auroc"] == pytest.approx(roc_auc_score(positive, score))
        assert metrics[f"{what}_aupr"] == pytest.approx(average_precision_score(positive, score))
        assert metrics[f"{what}_fpr95"] == pytest.approx(fpr95(positive, score))
    for group, part in (("id", ~foreign), ("ood", foreign)):
        assert metrics[f"mean_weight_{group}"] == pytest.approx(result.weights[part].mean())
        assert metrics[f"drop_rate_{group}"] == pytest.approx((verdicts["verdict"][part] == "drop").mean())
    if weights == "wr":
        assert metrics["drop_rate_ood"] > 0.5 > metrics["drop_rate_id"], "else the example shows nothing"


def test_run_metrics_follow_from_the_history(moons):
    result = wrssl.fit(moons, method="entmin", weights="wr-cluster", steps=20, seed=0)
    rows = [row for _, row in result.history.iterrows()]
    best = min(rows, key=lambda row: (-row["val_accuracy"], row["val_loss"]))
    assert result.metrics["val_accuracy"] == best["val_accuracy"]
    assert result.metrics["val_loss"] == best["val_loss"]
    assert result.metrics["best_step"] == best["step"]
    assert result.metrics["last_val_accuracy"] == rows[-1]["val_accuracy"]
    assert (result.metrics["chosen"], result.metrics["fallback_steps"]) == (None, 0)


def test_what_is_unknown_is_none(moons):
    """Without the truth nothing is said about the pool, without labels to choose by nothing about the choice."""
    own = wrssl.Scenario(labeled=moons.labeled, unlabeled=moons.unlabeled)
    metrics = wrssl.fit(own, method="entmin", steps=2).metrics
    names = [f"{what}_{name}" for what in ("ood", "weight") for name in ("auroc", "fpr95", "aupr")]
    names += [f"{name}_{group}" for name in ("mean_weight", "drop_rate") for group in ("id", "ood")]
    names += ["val_accuracy", "val_loss", "last_val_accuracy", "test_accuracy", "test_loss", "chosen"]
    assert {name: metrics[name] for name in names} == dict.fromkeys(names)


def test_a_pool_without_foreign_members_has_no_foreign_mean():
    clean = wrssl.load_scenario("moons", ood="faraway", ratio=0.0, seed=0)
    metrics = wrssl.fit(clean, method="entmin", steps=2, fallback=False).metrics
    assert (metrics["mean_weight_ood"], metrics["drop_rate_ood"], metrics["ood_auroc"]) == (None, None, None)
    assert 0 < metrics["mean_weight_id"] <= 1
    assert 0 <= metrics["drop_rate_id"] < 1
