"""The whole of wrssl.fit on small data."""

from __future__ import annotations

import copy
import json

import numpy as np
import pytest
import torch
from torch import nn

import wrssl
from wrssl.api import DataError, DivergenceError, ModelError, OptionError
from wrssl.evaluate import is_ood
from wrssl.registry import METHODS
from wrssl.training import Callback, resume_run

COLUMNS = ["id", "weight", "ood_score", "is_ood", "verdict", "cluster", "pseudo_label", "confidence"]


def same(a, b):
    assert np.array_equal(a.weights, b.weights)
    assert a.verdicts.equals(b.verdicts)
    ignored = {"seconds_per_step"}
    assert {k: v for k, v in a.metrics.items() if k not in ignored} == {
        k: v for k, v in b.metrics.items() if k not in ignored
    }
    for p, q in zip(a.model.state_dict().values(), b.model.state_dict().values(), strict=True):
        assert torch.equal(p, q)


@pytest.mark.parametrize("weights", ["wr", "wr-cluster"])
def test_same_seed_same_result_and_the_global_generator_is_left_alone(weights, digits, global_rng_untouched):
    numpy_state = np.random.get_state()[1].copy()  # noqa: NPY002  (the very state that must not move)
    runs = [wrssl.fit(digits, method="vat", weights=weights, steps=12, seed=3) for _ in range(2)]
    same(*runs)
    other = wrssl.fit(digits, method="vat", weights=weights, steps=12, seed=4)
    assert not np.array_equal(runs[0].weights, other.weights)
    assert np.array_equal(numpy_state, np.random.get_state()[1])  # noqa: NPY002


# Per step, with 20 labeled and 100 unlabeled rows; mixmatch mixes all of them and two views of the pool once more.
IMAGES = {
    "supervised": 20, "pl": 120, "pi": 220, "mt": 220, "vat": 320, "entmin": 120, "uda": 220, "fixmatch": 220,
    "mixmatch": 440,
}  # fmt: skip
PAIRS = [(m, w) for m in IMAGES for w in ("none", "oracle", "wr-instance", "wr-cluster", "wr")]
PAIRS = [pair for pair in PAIRS if pair not in (("supervised", "wr-instance"), ("supervised", "wr-cluster"))]


def test_the_pairs_have_every_method_of_the_package():
    assert set(IMAGES) == {name for name in METHODS.names() if METHODS.get(name).__module__.startswith("wrssl.")}


@pytest.mark.parametrize(("method", "weights"), PAIRS)
def test_every_pair_runs_with_equal_steps_and_images(method, weights, moons):
    result = wrssl.fit(moons, method=method, weights=weights, steps=7, seed=0, fallback=False)
    assert result.metrics["optimizer_steps"] == 7
    assert result.metrics["images_forwarded"] == 7 * IMAGES[method]
    assert list(result.verdicts.columns) == COLUMNS
    assert len(result.weights) == len(result.verdicts) == 1000
    assert result.weights.min() >= 0
    assert result.weights.max() <= 1
    if method == "supervised":
        assert not result.weights.any()
    elif weights == "oracle":
        assert np.array_equal(result.weights, 1 - result.verdicts["is_ood"].to_numpy())


@pytest.mark.parametrize("weights", ["wr-instance", "wr-cluster", "prior", "l2rw", "mwn", "ds3l", "uasd"])
def test_a_method_that_ignores_the_pool_refuses_to_learn_weights_of_it(weights, moons, tmp_path):
    with pytest.raises(OptionError, match=f"^supervised ignores the pool, so weights='{weights}' has nothing to weigh"):
        wrssl.fit(moons, method="supervised", weights=weights, steps=3, out=tmp_path / "run")
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("bn", ["batch", "frozen", "eval", "weighted"])
@pytest.mark.parametrize("model", ["mlp", "mlp-nobn"])
def test_every_policy_runs_with_and_without_batch_norm(bn, model, moons):
    assert 0 <= wrssl.fit(moons, model=model, bn=bn, method="mt", steps=5).metrics["test_accuracy"] <= 1


def test_learning_happens(moons):
    """The loss goes down and the boundary is learned: a loop that never steps its optimizer fails here."""
    result = wrssl.fit(moons, method="vat", weights="oracle", steps=300, seed=0)
    assert result.history["labeled"].iloc[-1] < 0.3 * result.history["labeled"].iloc[0]
    assert result.metrics["test_accuracy"] > 0.9


def test_contamination_hurts_plain_training_with_batch_norm_and_perfect_weights_mend_it(moons):
    plain = wrssl.fit(moons, method="vat", weights="none", bn="batch", steps=300, seed=0)
    oracle = wrssl.fit(moons, method="vat", weights="oracle", bn="weighted", steps=300, seed=0)
    assert oracle.metrics["test_accuracy"] > plain.metrics["test_accuracy"] + 0.05


def test_the_checkpoint_with_the_lowest_validation_error_is_returned(moons):
    result = wrssl.fit(moons, method="vat", weights="none", bn="batch", steps=200, seed=0)
    history = result.history
    best = history.sort_values(["val_accuracy", "val_loss"], ascending=[False, True]).iloc[0]
    assert result.metrics["best_step"] == best["step"]
    assert result.metrics["val_accuracy"] == best["val_accuracy"]
    short = wrssl.fit(moons, method="vat", weights="none", bn="batch", steps=200, seed=0)
    same(result, short)
    x, y = moons.test
    assert (result.predict(x) == moons.classes[y.numpy()]).mean() == result.metrics["test_accuracy"]


def test_the_learning_rate_drops_at_half_time(moons):
    history = wrssl.fit(moons, steps=40, lr=0.01).history
    assert history["lr"].tolist() == [0.01] * 10 + [0.002] * 10


@pytest.mark.parametrize("weights", ["wr", "wr-cluster"])
def test_truth_and_test_set_do_not_influence_training(weights, digits):
    parts = digits.labeled, digits.unlabeled, digits.validation
    blind, sighted = wrssl.Scenario(*parts), wrssl.Scenario(*parts, digits.test, is_ood(digits))
    seen = wrssl.fit(sighted, weights=weights, steps=10, seed=1)
    assert seen.metrics["test_accuracy"] is not None
    assert seen.metrics["ood_auroc"] is not None
    unseen = wrssl.fit(blind, weights=weights, steps=10, seed=1)
    assert seen.metrics["chosen"] == unseen.metrics["chosen"]
    assert np.array_equal(seen.weights, unseen.weights)
    assert unseen.metrics["test_accuracy"] is None
    assert unseen.metrics["ood_auroc"] is None
    assert unseen.verdicts["is_ood"].isna().all()
    for p, q in zip(seen.model.state_dict().values(), unseen.model.state_dict().values(), strict=True):
        assert torch.equal(p, q)
    with pytest.raises(DataError, match="oracle"):
        wrssl.fit(blind, weights="oracle", steps=3)


def test_without_validation_the_weights_learn_by_cross_fitting(moons):
    x, y = moons.labeled
    own = wrssl.Scenario(labeled=(x, y), unlabeled=moons.unlabeled, test=moons.test)
    result = wrssl.fit(own, weights="wr-cluster", method="entmin", steps=30, seed=0)
    assert np.ptp(result.weights) > 0
    assert result.metrics["val_accuracy"] is None
    assert result.metrics["best_step"] == 30


@pytest.mark.parametrize("weights", ["none", "wr-cluster", "wr-instance", "prior", "wr"])
def test_the_smallest_data_there_is(weights, moons):
    x, y = moons.labeled
    rows = torch.tensor([int((y == k).nonzero()[0]) for k in (0, 1)])
    validation = (moons.validation[0][:2], moons.validation[1][:2])
    own = wrssl.Scenario(labeled=(x[rows], y[rows]), unlabeled=moons.unlabeled[:1], validation=validation)
    result = wrssl.fit(own, weights=weights, steps=7)
    assert len(result.weights) == 1
    assert np.isfinite(result.history["loss"]).all()


def test_own_module_is_trained_on_a_copy(moons):
    class Own(nn.Module):
        def __init__(self):
            super().__init__()
            self.body = nn.Sequential(nn.Linear(2, 16), nn.BatchNorm1d(16), nn.ReLU(), nn.Dropout(0.1))
            self.fc = nn.Linear(16, 2)

        def forward(self, x):
            return self.fc(self.body(x))

    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        model = Own()
    before = copy.deepcopy(model.state_dict())
    state = torch.get_rng_state()
    first, second = (wrssl.fit(moons, model=model, steps=15) for _ in range(2))
    assert torch.equal(state, torch.get_rng_state())  # dropout draws from a private stream
    same(first, second)
    assert all(torch.equal(v, before[k]) for k, v in model.state_dict().items())
    assert type(model.body[1]) is nn.BatchNorm1d
    with pytest.raises(OptionError, match="classes"):
        wrssl.fit(moons, model=nn.Linear(2, 3), steps=3)
    with pytest.raises(ModelError):
        wrssl.fit(moons, model=nn.Sequential(nn.Linear(2, 2), nn.Softmax(1)), steps=3)


def test_string_classes_come_back(moons):
    x, y = moons.labeled
    names = np.array(["left", "right"])
    own = wrssl.Scenario(labeled=(x, names[y.numpy()]), unlabeled=moons.unlabeled)
    result = wrssl.fit(own, steps=5)
    assert set(result.predict(moons.test[0])) <= {"left", "right"}
    p = result.predict_proba(moons.test[0][:7])
    assert p.shape == (7, 2)
    np.testing.assert_allclose(p.sum(1), 1)
    assert set(result.verdicts["pseudo_label"]) <= {"left", "right"}


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"method": "vta"}, "There is no method"),
        ({"weights": "wr-clusters"}, "There is no weighting"),
        ({"bn": "layer"}, "There is no bn 'layer'; choose 'batch'"),
        ({"model": "resnet"}, "There is no model"),
        ({"steps": 0}, "at least 1"),
        ({"steps": "many"}, "auto"),
        ({"seed": -1}, "seed"),
        ({"batch_size": 1}, "batch_size"),
        ({"lr": 0.0}, "lr"),
        ({"gate": "sine"}, "There is no gate"),
        ({"gate": "cosine", "method": "supervised"}, "does not have both"),
        ({"budget": "rich"}, "budget"),
        ({"precision": "16-true"}, "There is no precision"),
        ({"threads": 0}, "threads must be a whole number of at least 1"),
        ({"false_drop_rate": 0.7}, "from 0 to 0.5"),
        ({"device": "abacus"}, "device"),
        ({"method_options": {"epsilon": 1}}, "no option 'epsilon'"),
        ({"weight_options": {"L": 0}}, "at least 1"),
        ({"weight_options": {"K": 0}}, "K"),
        ({"weight_options": {"embedding": (np.zeros((3, 2)), np.zeros((20, 2)))}}, "one row per member"),
        ({"weights": "wr-cluster", "weight_options": {"L": 0}}, "at least 1"),
        ({"weights": "wr-cluster", "weight_options": {"K": 0}}, "K"),
        ({"weights": "wr-cluster", "weight_options": {"solver": "magic"}}, "There is no solver"),
        ({"weights": "wr-cluster", "weight_options": {"compat": "paper"}}, "alpha"),
        ({"weights": "wr-cluster", "weight_options": {"embedding": np.zeros((3, 2))}}, "one row per member"),
    ],
    ids=str,
)
def test_wrong_options_are_refused_before_anything_is_written(options, words, moons, tmp_path):
    out = tmp_path / "run"
    with pytest.raises(wrssl.WRSSLError, match=words):
        wrssl.fit(moons, out=out, **{"steps": 3, **options})
    assert not out.exists()


def test_an_exploding_loss_ends_with_a_sentence(moons):
    with pytest.raises(DivergenceError, match="lower lr"):
        wrssl.fit(moons, method="entmin", lr=1e30, steps=20)


def test_compat_paper_reports_a_diverging_series(moons):
    options = {"compat": "paper", "alpha": 1e3, "L": 1, "J": 0}
    with pytest.raises(DivergenceError, match="alpha"):
        wrssl.fit(moons, method="entmin", weights="wr-cluster", weight_options=options, steps=5)


def test_auto_steps_for_own_data_do_not_disturb_the_run(moons):
    own = wrssl.Scenario(labeled=moons.labeled, unlabeled=moons.unlabeled, validation=moons.validation)
    chosen = wrssl.fit(own, steps="auto", seed=0, fallback=False)
    assert chosen.config["steps"] == 200
    same(chosen, wrssl.fit(own, steps=200, seed=0, fallback=False))


def test_callbacks_see_everything(moons):
    class Watch(Callback):
        def __init__(self):
            self.steps, self.rows, self.ended = 0, [], False

        def on_step(self, trainer, outcome):
            self.steps += 1
            assert trainer.done == self.steps

        def on_evaluate(self, trainer, row):
            self.rows.append(row["step"])
            assert trainer.history[-1] == row

        def on_end(self, trainer):
            self.ended = True

    watch = Watch()
    wrssl.fit(moons, steps=40, callbacks=[watch])
    assert (watch.steps, watch.rows[-1], watch.ended) == (40, 40, True)


def test_run_directory_round_trip(digits, tmp_path):
    out = tmp_path / "run"
    result = wrssl.fit(digits, steps=10, seed=2, out=out)
    assert {p.name for p in out.iterdir()} == {
        "config.json", "metrics.json", "history.csv", "verdicts.csv", "skipped.csv", "model.safetensors", "report.html",
        "state",
    }  # fmt: skip
    again = wrssl.load(out)
    assert np.array_equal(again.weights, result.weights)
    assert np.array_equal(again.predict_proba(digits.test[0]), result.predict_proba(digits.test[0]))
    assert again.metrics["test_accuracy"] == result.metrics["test_accuracy"]
    assert json.loads((out / "config.json").read_text())["seed"] == 2
    assert (out / "skipped.csv").read_text() == "id,reason\n"
    with pytest.raises(OptionError, match="not empty"):
        wrssl.fit(digits, steps=3, out=out)
    with pytest.raises(OptionError, match="not empty"):
        result.save(out)
    result.save(tmp_path / "copy")
    assert np.array_equal(wrssl.load(tmp_path / "copy").weights, result.weights)
    with pytest.raises(DataError, match="shape"):
        again.predict(np.zeros((3, 1, 9, 9)))


@pytest.mark.parametrize(
    ("method", "weights"),
    [
        ("vat", "wr-cluster"),
        ("mt", "wr-instance"),
        ("pi", "none"),
        ("vat", "l2rw"),
        ("pi", "mwn"),
        ("mt", "ds3l"),
        ("entmin", "uasd"),
        ("vat", "wr"),
        ("pl", "prior"),
    ],
)
def test_a_stopped_run_goes_on_exactly(method, weights, moons, tmp_path, monkeypatch):
    monkeypatch.setenv("WRSSL_SAVE_EVERY", "0")

    class Stop(Callback):
        def on_step(self, trainer, outcome):
            if trainer.done == 26:
                raise KeyboardInterrupt

    whole = wrssl.fit(moons, method=method, weights=weights, steps=40, seed=0)
    with pytest.raises(KeyboardInterrupt):
        wrssl.fit(moons, method=method, weights=weights, steps=40, seed=0, out=tmp_path / "run", callbacks=[Stop()])
    resumed = resume_run(tmp_path / "run")
    same(whole, resumed)
    finished = resume_run(tmp_path / "run")  # a finished run is read, not repeated
    assert finished.metrics["test_accuracy"] == resumed.metrics["test_accuracy"]


def test_check_hypergradient_on_the_users_own_model_and_data(moons, global_rng_untouched):
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        model = nn.Sequential(nn.Linear(2, 6), nn.BatchNorm1d(6), nn.ReLU(), nn.Linear(6, 2))
    for scope in ("head", "network"):
        checked = wrssl.check_hypergradient(model, moons, method="vat", scope=scope, batch_size=30)
        assert checked.passed
        assert checked.relative_error < 1e-5
        assert checked.cosine > 0.999999
    rough = wrssl.check_hypergradient(model, moons, solver="neumann", terms=0, batch_size=30)
    assert not rough.passed
    with pytest.raises(OptionError, match="ignores the pool"):
        wrssl.check_hypergradient(model, moons, method="supervised")
