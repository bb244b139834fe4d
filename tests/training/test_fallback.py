"""The fallback: two more models that are ordinary fits, a choice by the select set, and verdicts that ignore it."""

from __future__ import annotations

import json
import math
from types import SimpleNamespace

import numpy as np
import pytest
import torch

import wrssl
import wrssl.training.fitting as fitting
from wrssl.api import BatchWeights, DivergenceError, Weighting
from wrssl.config import FitConfig
from wrssl.registry import METHODS, WEIGHTINGS
from wrssl.training import Trainer, assemble, effort, plan_run, resume_run
from wrssl.training.assembly import Choice
from wrssl.training.loop import Best

STEPS = 20
NAMES = ["weighted", "plain", "supervised"]


def force(monkeypatch, name):
    """Let the choice be this one, whatever the select set says."""
    monkeypatch.setattr(Choice, "of", lambda trained: Choice(name, trained))


def models_of(scenario, **options):
    """The names of the models that a run with these options trains."""
    return list(assemble(scenario, FitConfig(**options)).models)


def assert_same_model(one, other):
    assert list(one.state_dict()) == list(other.state_dict())
    for p, q in zip(one.state_dict().values(), other.state_dict().values(), strict=True):
        assert torch.equal(p, q)


def assert_same(one, other):
    """Two results that differ in their duration only."""
    assert np.array_equal(one.weights, other.weights)
    assert one.verdicts.equals(other.verdicts)
    first, second = ({k: v for k, v in r.metrics.items() if k != "seconds_per_step"} for r in (one, other))
    assert first == second
    assert_same_model(one.model, other.model)


@pytest.mark.parametrize(
    ("name", "method", "alone"),
    [
        ("plain", "vat", {"method": "vat", "method_options": {"eps": 1.0}, "weights": "none", "bn": "batch"}),
        ("plain", "mt", {"method": "mt", "weights": "none", "bn": "batch"}),
        ("supervised", "vat", {"method": "supervised", "weights": "none", "bn": "batch"}),
        ("supervised", "pl", {"method": "supervised", "weights": "none", "bn": "batch"}),
    ],
)
def test_a_model_of_the_fallback_is_a_fit_of_its_own(name, method, alone, moons, monkeypatch):
    """The weighted one has other batch statistics and a gate; pl has a tenth of the learning rate of the labels alone.
    None of it may reach the others."""
    force(monkeypatch, name)
    options = {"method_options": {"eps": 1.0}, "gate": "cosine"} if method == "vat" else {}
    together = wrssl.fit(moons, method=method, steps=STEPS, seed=3, bn="frozen", **options)
    separate = wrssl.fit(moons, steps=STEPS, seed=3, **alone)
    assert together.metrics["chosen"] == name
    assert_same_model(together.model, separate.model)
    for key in ("test_accuracy", "test_loss", "val_accuracy", "val_loss", "best_step", "optimizer_steps", "images"):
        assert together.metrics[key] == separate.metrics[key], key
    columns = ["step", "lr", "loss", "val_accuracy", "val_loss"]
    assert together.history[columns].equals(separate.history[columns])


def test_the_weighted_model_does_not_notice_the_others(moons, monkeypatch):
    force(monkeypatch, "weighted")
    together = wrssl.fit(moons, steps=STEPS, seed=0)
    alone = wrssl.fit(moons, steps=STEPS, seed=0, fallback=False)
    assert_same_model(together.model, alone.model)
    assert np.array_equal(together.weights, alone.weights)
    assert together.verdicts.equals(alone.verdicts)


def judged(**evaluations):
    """Trainers of which only the best evaluation on the select set is known."""
    return {name: SimpleNamespace(best=Best(1, *found), done=7) for name, found in evaluations.items()}


@pytest.mark.parametrize(
    ("weighted", "plain", "supervised", "chosen"),
    [
        ((0.9, 0.5), (0.8, 0.1), (0.8, 0.1), "weighted"),
        ((0.8, 0.1), (0.9, 0.5), (0.8, 0.1), "plain"),
        ((0.8, 0.1), (0.8, 0.1), (0.81, 0.9), "supervised"),
        ((0.8, 0.3), (0.8, 0.2), (0.8, 0.25), "plain"),
        ((0.8, 0.3), (0.8, 0.3), (0.8, 0.2), "supervised"),
        ((0.8, 0.3), (0.8, 0.3), (0.8, 0.3), "weighted"),
        ((0.7, 0.3), (0.8, 0.3), (0.8, 0.3), "plain"),
        ((0.0, math.inf), (0.0, 5.0), (0.0, math.inf), "plain"),
    ],
)
def test_accuracy_then_loss_then_order(weighted, plain, supervised, chosen):
    trained = judged(weighted=weighted, plain=plain, supervised=supervised)
    choice = Choice.of(trained)
    assert choice.name == chosen
    assert choice.trainer is trained[chosen]
    assert choice.metrics() == {
        "chosen": chosen,
        "candidates": {
            name: {"val_accuracy": found[0], "val_loss": found[1]}
            for name, found in zip(NAMES, (weighted, plain, supervised), strict=True)
        },
        "fallback_steps": 14,
    }


def test_the_metrics_tell_what_was_compared(moons, monkeypatch, tmp_path):
    """Numbers of the returned model under the usual names, all three side by side, and what the others cost."""
    trained = []

    choose = Choice.of

    def spy(candidates):
        trained.append(candidates)
        return choose(candidates)

    monkeypatch.setattr(Choice, "of", spy)
    result = wrssl.fit(moons, steps=STEPS, seed=0, out=tmp_path / "run")
    metrics = result.metrics
    assert metrics["optimizer_steps"] == STEPS
    assert metrics["fallback_steps"] == 2 * STEPS
    assert list(metrics["candidates"]) == NAMES == list(trained[0])
    best_of = {}
    for name, trainer in trained[0].items():
        row = min(trainer.history, key=lambda r: (-r["val_accuracy"], r["val_loss"]))
        best_of[name] = {"val_accuracy": row["val_accuracy"], "val_loss": row["val_loss"]}
    assert metrics["candidates"] == best_of
    best = max(NAMES, key=lambda name: (best_of[name]["val_accuracy"], -best_of[name]["val_loss"]))
    assert metrics["chosen"] == best
    assert {key: metrics[key] for key in ("val_accuracy", "val_loss")} == best_of[best]
    assert result.model is trained[0][best].net.module
    x, y = moons.test
    assert metrics["test_accuracy"] == (result.predict(x) == moons.classes[y.numpy()]).mean()
    written = json.loads((tmp_path / "run" / "metrics.json").read_text())
    assert {key: written[key] for key in ("chosen", "candidates", "fallback_steps")} == {
        "chosen": best, "candidates": best_of, "fallback_steps": 2 * STEPS,
    }  # fmt: skip


def test_without_a_fallback_there_is_none_of_it(moons, tmp_path):
    assert models_of(moons) == NAMES
    assert models_of(moons, fallback=False) == ["weighted"]
    result = wrssl.fit(moons, steps=STEPS, fallback=False, out=tmp_path / "run")
    assert (result.metrics["chosen"], result.metrics["fallback_steps"]) == (None, 0)
    assert "candidates" not in result.metrics
    assert result.config["fallback"] is False
    assert [p.name for p in (tmp_path / "run" / "state").iterdir() if p.is_dir()] == []


@pytest.mark.parametrize(
    "options", [{"weights": "wr-cluster"}, {"weights": "prior"}, {"method": "supervised"}], ids=str
)
def test_only_a_guarded_weighting_of_a_pool_that_is_used_has_a_fallback(options, moons):
    assert models_of(moons, **options) == ["weighted"]
    result = wrssl.fit(moons, steps=3, **options)
    assert (result.metrics["chosen"], result.metrics["fallback_steps"]) == (None, 0)
    assert "candidates" not in result.metrics


def test_without_a_validation_set_there_is_nothing_to_choose_by(moons):
    own = wrssl.Scenario(labeled=moons.labeled, unlabeled=moons.unlabeled, test=moons.test)
    assert models_of(own) == ["weighted"]
    result = wrssl.fit(own, steps=STEPS)
    assert (result.metrics["chosen"], result.metrics["fallback_steps"]) == (None, 0)
    assert result.metrics["best_step"] == STEPS


@pytest.mark.parametrize(("size", "models"), [(59, 1), (60, 3)])
def test_a_few_select_examples_do_not_choose(size, models, moons):
    """Half of the validation set selects; from 30 examples on it may choose."""
    x, y = moons.validation
    own = wrssl.Scenario(moons.labeled, moons.unlabeled, (x[:size], y[:size]))
    assert len(models_of(own)) == models
    metrics = wrssl.fit(own, steps=2).metrics
    assert metrics["fallback_steps"] == 2 * (models - 1)
    assert (metrics["chosen"] is None) == (models == 1)


@pytest.mark.parametrize("name", ["plain", "supervised"])
def test_the_pool_is_judged_by_the_weighted_model_whatever_is_returned(name, moons, monkeypatch):
    alone = wrssl.fit(moons, steps=STEPS, seed=0, fallback=False)
    force(monkeypatch, name)
    result = wrssl.fit(moons, steps=STEPS, seed=0)
    assert np.array_equal(result.weights, alone.weights)
    by_weighting = ["id", "weight", "ood_score", "is_ood", "verdict", "cluster"]
    assert result.verdicts[by_weighting].equals(alone.verdicts[by_weighting])
    for key in ("ood_auroc", "weight_auroc", "mean_weight_id", "mean_weight_ood", "drop_rate_id", "drop_rate_ood"):
        assert result.metrics[key] == alone.metrics[key], key
    # The predicted class of a member comes from the model that is returned.
    p = result.predict_proba(moons.unlabeled)
    np.testing.assert_allclose(result.verdicts["confidence"], p.max(1), rtol=1e-5)
    assert result.verdicts["pseudo_label"].tolist() == moons.classes[p.argmax(1)].tolist()
    assert not np.allclose(result.verdicts["confidence"], alone.verdicts["confidence"], atol=1e-3)


def interrupt(monkeypatch, number):
    """Ctrl-C in the given step, counted over all models; returns the steps that were begun."""
    begun, step_of = [], Trainer.step

    def step(self, step):
        begun.append(step)
        if len(begun) == number:
            raise KeyboardInterrupt
        return step_of(self, step)

    monkeypatch.setattr(Trainer, "step", step)
    return begun


@pytest.mark.parametrize(
    ("method", "lr", "during"),
    # The labels alone have the learning rate of vat and not of pl, unless one is given, which holds for all three.
    [("vat", None, 1), ("vat", None, 2), ("pl", None, 2), ("pl", 0.002, 2)],
)
def test_a_run_that_was_interrupted_in_the_fallback_resumes_exactly(method, lr, during, moons, tmp_path, monkeypatch):
    monkeypatch.setenv("WRSSL_SAVE_EVERY", "0")
    whole = wrssl.fit(moons, method=method, lr=lr, steps=STEPS, seed=0)
    with monkeypatch.context() as stopped:
        interrupt(stopped, during * STEPS + 13)
        with pytest.raises(KeyboardInterrupt):
            wrssl.fit(moons, method=method, lr=lr, steps=STEPS, seed=0, out=tmp_path / "run")
    assert sorted(p.name for p in (tmp_path / "run" / "state").iterdir() if p.is_dir()) == sorted(NAMES[1 : during + 1])
    with monkeypatch.context() as watched:
        begun = interrupt(watched, 10**9)
        resumed = resume_run(tmp_path / "run")
    assert len(begun) == 3 * STEPS - during * STEPS - 12, "what was done is not done again"
    assert_same(whole, resumed)
    again = resume_run(tmp_path / "run")  # finished, and read only
    assert again.metrics["chosen"] == whole.metrics["chosen"]
    assert again.metrics["candidates"] == whole.metrics["candidates"]


def test_a_stopped_run_remembers_that_there_was_no_fallback(moons, tmp_path, monkeypatch):
    monkeypatch.setenv("WRSSL_SAVE_EVERY", "0")
    whole = wrssl.fit(moons, steps=STEPS, seed=0, fallback=False)
    with monkeypatch.context() as stopped:
        interrupt(stopped, 13)
        with pytest.raises(KeyboardInterrupt):
            wrssl.fit(moons, steps=STEPS, seed=0, fallback=False, out=tmp_path / "run")
    resumed = resume_run(tmp_path / "run")
    assert_same(whole, resumed)
    assert resumed.metrics["fallback_steps"] == 0
    assert [p.name for p in (tmp_path / "run" / "state").iterdir() if p.is_dir()] == []


@pytest.mark.parametrize(("models", "expected"), [(1, 1200), (3, 400)])
def test_two_minutes_are_for_all_models_together(models, expected, moons, monkeypatch, capsys):
    own = wrssl.Scenario(labeled=moons.labeled, unlabeled=moons.unlabeled, validation=moons.validation)
    clock = iter(range(1000))
    monkeypatch.setattr(effort.time, "perf_counter", lambda: 0.1 * next(clock))  # 0.1 s a step
    nothing = SimpleNamespace(state_dict=dict, load_state_dict=lambda state: None, uses_unlabeled=True)
    net = SimpleNamespace(module=nothing, images={})
    plan = SimpleNamespace(batch_size=10)
    trial = SimpleNamespace(plan=plan, net=net, method=nothing, weighting=nothing, step=lambda step: None)
    assert effort.choose_steps("auto", own, lambda steps: trial, models) == expected


@pytest.mark.parametrize(("fallback", "models"), [(True, 3), (False, 1)])
def test_the_number_of_models_is_known_when_steps_are_chosen(fallback, models, moons, monkeypatch):
    told = []

    def spy(steps, scenario, make_trainer, number, say):
        told.append((steps, number))
        return 2

    monkeypatch.setattr(fitting, "choose_steps", spy)
    result = wrssl.fit(moons, method="entmin", fallback=fallback)
    assert told == [("auto", models)]
    assert result.metrics["fallback_steps"] == 2 * (models - 1)


@pytest.mark.parametrize("name", NAMES)
def test_any_model_that_is_returned_can_be_read_again(name, moons, monkeypatch, tmp_path):
    """config.json names the batch statistics of the weighted model; the others were trained with plain ones."""
    force(monkeypatch, name)
    result = wrssl.fit(moons, steps=STEPS, seed=0, out=tmp_path / "run")
    again = wrssl.load(tmp_path / "run")
    assert again.metrics["chosen"] == name
    assert np.array_equal(again.predict_proba(moons.test[0]), result.predict_proba(moons.test[0]))
    assert np.array_equal(again.weights, result.weights)
    assert again.verdicts["verdict"].tolist() == result.verdicts["verdict"].tolist()


@pytest.fixture
def fragile():
    """Registers a method "fragile" that breaks down where pool members are weighted, or where they are not."""

    def register(where_weighted):
        @METHODS.register("fragile")
        class Fragile(METHODS.get("entmin")):
            def views(self, net, x, context):
                if context.step == 3 and (net.weights is not None) == where_weighted:
                    raise DivergenceError("The loss is not finite any more.")
                return super().views(net, x, context)

    with METHODS.isolated():
        yield register


def test_a_model_of_the_fallback_that_breaks_down_is_not_chosen(moons, fragile):
    fragile(where_weighted=False)
    result = wrssl.fit(moons, method="fragile", steps=STEPS, seed=0)
    assert list(result.metrics["candidates"]) == ["weighted", "supervised"]
    assert result.metrics["fallback_steps"] == STEPS


def test_a_weighted_model_that_breaks_down_is_an_error(moons, fragile):
    fragile(where_weighted=True)
    with pytest.raises(DivergenceError, match="not finite"):
        wrssl.fit(moons, method="fragile", steps=STEPS, seed=0)


@pytest.mark.parametrize("is_guarded", [True, False])
def test_a_weighting_from_outside_has_the_fallback_if_it_declares_it(is_guarded, moons, tmp_path):
    """The declaration counts, not the name."""

    class Half(Weighting):
        summary = "for this file"
        guarded = is_guarded

        def batch(self, index):
            return BatchWeights(torch.full((len(index),), 0.5))

    options = {"method": "entmin", "weights": "half", "steps": STEPS, "seed": 0}
    with WEIGHTINGS.isolated():
        WEIGHTINGS.register("half")(Half)
        result = wrssl.fit(moons, **options, out=tmp_path / "run")
        planned = plan_run(moons, FitConfig(**options))["models"]
        unguarded = wrssl.fit(moons, **options, fallback=False)
    assert len(planned) == (3 if is_guarded else 1)
    assert unguarded.metrics["fallback_steps"] == 0
    assert np.array_equal(result.weights, np.full(1000, 0.5))
    folders = sorted(p.name for p in (tmp_path / "run" / "state").iterdir() if p.is_dir())
    if not is_guarded:
        assert (result.metrics["chosen"], result.metrics["fallback_steps"], folders) == (None, 0, [])
        assert_same(result, unguarded)
        return
    assert folders == ["plain", "supervised"]
    candidates = result.metrics["candidates"]
    assert list(candidates) == NAMES
    assert result.metrics["fallback_steps"] == 2 * STEPS
    best = max(NAMES, key=lambda name: (candidates[name]["val_accuracy"], -candidates[name]["val_loss"]))
    assert result.metrics["chosen"] == best
    plain = wrssl.fit(moons, method="entmin", weights="none", bn="batch", steps=STEPS, seed=0)
    for key in ("val_accuracy", "val_loss"):
        assert candidates["plain"][key] == plain.metrics[key]
        assert candidates["weighted"][key] == unguarded.metrics[key]
