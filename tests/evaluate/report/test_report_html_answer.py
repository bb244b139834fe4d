"""The sentences: each number in them is a number of the run, and what is unknown is called unknown."""

from __future__ import annotations

import copy
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import binomtest

from wrssl.api import Method
from wrssl.evaluate import render
from wrssl.evaluate.report.sentences import answer, ignores_pool, judged_by_weighting, wilson
from wrssl.evaluate.report.text import duration, flat, jsonable, percent, plural, shortened
from wrssl.judging import PoolJudge
from wrssl.registry import METHODS, WEIGHTINGS

CANDIDATES = {
    "weighted": {"val_accuracy": 0.9, "val_loss": 0.3},
    "plain": {"val_accuracy": 0.8, "val_loss": 0.5},
    "supervised": {"val_accuracy": 0.85, "val_loss": 0.4},
}


def plain_spaces(found):
    return {key: [sentence.replace("\xa0", " ") for sentence in said] for key, said in found.items()}


@pytest.fixture
def case(data):
    """``case(metrics={...}, ...)``: the sentences with some numbers changed; None removes a part."""

    def say(verdicts=None, **changes):
        changed = copy.deepcopy(data)
        for part, values in changes.items():
            changed[part] |= values
        if verdicts is not None:
            changed["pool"]["verdicts"] = dict(zip(("keep", "doubt", "drop"), verdicts, strict=True))
            changed["pool"]["size"] = sum(verdicts)
        return plain_spaces(answer(changed))

    return say


def test_accuracy_comes_first_with_its_interval(case):
    interval = binomtest(325, 400).proportion_ci(method="wilson")
    low, high = (f"{100 * end:.1f} %" for end in (interval.low, interval.high))
    said = case(sizes={"test": 400})["lead"][0]
    assert said == f"The model is right on 81.2 % of 400 test examples (95 % interval {low} to {high})."


def test_without_a_test_set_the_accuracy_is_unknown(case):
    said = case(metrics={"test_accuracy": None}, sizes={"test": 0})
    assert "unknown, since there is no test set" in said["lead"][0]
    assert "81.2 %" in said["lead"][0]
    assert any("test set" in sentence for sentence in said["advice"])
    said = case(metrics={"test_accuracy": None, "val_accuracy": None}, sizes={"test": 0, "validation": 0})
    assert said["lead"][0] == (
        "How often the model is right is unknown, since there is neither a test nor a validation set."
    )


def test_the_verdicts_are_counted(case):
    said = case(verdicts=(60, 10, 130))
    assert said["lead"][1] == (
        "Of the 200 pool members 130 (65.0 %) do not seem to belong (verdict drop), 10 (5.0 %) are in doubt, and "
        "60 (30.0 %) can be kept."
    )
    assert said["advice"][0].startswith("Take the 130 members with the verdict drop out of the pool")
    assert any("10 members in doubt" in sentence for sentence in said["advice"])


@pytest.mark.parametrize(
    ("judged", "mean", "silent"), [(True, 0.004, True), (True, 0.02, False), (False, 0.004, False)]
)
def test_a_pool_that_had_no_say_is_the_first_thing_to_look_at(case, judged, mean, silent):
    said = case(verdicts=(1, 9, 190), pool={"judged_by_weighting": judged, "mean_weight": mean})["advice"]
    assert said[0].startswith("Find out why hardly any member of the pool looks like the labeled examples") == silent
    assert said[0].startswith("Take the 190 members") != silent


@pytest.mark.parametrize(("drop", "stays"), [(50, True), (70, True), (200, False)])
def test_as_many_drops_as_a_clean_pool_has_are_no_alarm(case, drop, stays):
    """5 % of 1,000 members, with 400 examples to compare with: up to about 75 by chance."""
    said = case(verdicts=(1000 - drop, 0, drop), sizes={"validation": 400})["advice"]
    assert said[0].startswith("The pool can stay as it is") == stays
    assert not any("doubt" in sentence for sentence in said)


@pytest.mark.parametrize(
    ("chosen", "words", "numbers"),
    [
        ("weighted", "training with weights did best", "90.0 % (plain 80.0 %, labels alone 85.0 %)"),
        ("plain", "plain training (every member", "80.0 % (with weights 90.0 %, labels alone 85.0 %)"),
        ("supervised", "training on the labels alone did best", "85.0 % (with weights 90.0 %, plain 80.0 %)"),
    ],
)
def test_which_model_was_returned(case, chosen, words, numbers):
    said = case(metrics={"chosen": chosen, "candidates": CANDIDATES}, verdicts=(50, 0, 50))
    assert words in said["why"][0]
    assert numbers in said["why"][0]
    assert "half of the 40 validation labels" in said["why"][0]
    assert ("So the pool did not help here." in said["why"]) == (chosen == "supervised")
    assert any(s.startswith("Plain training did best") for s in said["advice"]) == (chosen == "plain")


def test_ties_and_breakdowns_are_told(case):
    candidates = {"weighted": CANDIDATES["weighted"], "supervised": {"val_accuracy": 0.9, "val_loss": 0.4}}
    why = case(metrics={"chosen": "weighted", "candidates": candidates}, config={"budget": "paper"})["why"]
    assert why[0].startswith("Of 2 models, training with weights did best on the 40 validation labels")
    assert "Equal accuracies were decided by the lower validation loss." in why
    assert any("plain training" in s and "not finite" in s for s in why)


def test_one_model_means_no_comparison(case):
    assert "whether the pool helped at all was not compared" in case()["why"][0]


def test_a_method_that_ignores_the_pool_says_nothing_about_it(case):
    said = case(pool={"used": False}, verdicts=(0, 150, 0))
    assert said["lead"][1].startswith("It was trained on the labels alone")
    assert said["advice"][0].startswith("Train with a method that uses the pool")
    assert not any("doubt" in sentence for sentence in said["advice"])


@pytest.mark.parametrize(
    ("share", "words"),
    [(0.5, "about 50 % of the pool looks foreign"), (0.1, "cannot be told from zero"), (None, "unknown")],
)
def test_the_share_of_foreign_members(case, share, words):
    assert any(words in sentence for sentence in case(pool={"foreign_share": share})["why"])


@pytest.mark.parametrize(
    ("method", "weights", "used", "judged"),
    [
        ("vat", "wr", True, True),
        ("vat", "prior", True, True),
        ("vat", "wr-cluster", True, False),
        ("vat", "none", True, False),
        ("supervised", "wr", False, False),
        ("a plug-in", "that is not loaded", True, False),
        (None, None, True, False),
    ],
)
def test_a_page_of_version_0_1_0_did_not_store_what_the_registries_know(data, method, weights, used, judged):
    old = copy.deepcopy(data)
    old["config"] |= {"method": method, "weights": weights}
    old["shown"]["everybody"] = True
    for name in ("used", "judged_by_weighting"):
        del old["pool"][name]
    assert ignores_pool(old) == (not used)
    assert judged_by_weighting(old) == judged
    assert render(old)


def test_a_method_and_a_weighting_from_outside_are_asked_what_they_do(run):
    class Labels(Method):
        summary, uses_unlabeled = "for tests", False

    class Judging(PoolJudge):
        def belonging(self, rows):
            return None

    with METHODS.isolated(), WEIGHTINGS.isolated():
        METHODS.register("labels")(Labels)
        WEIGHTINGS.register("judging")(Judging)
        WEIGHTINGS.register("not judging")(type("NotJudging", (PoolJudge,), {}))
        for method, weights, used, judged in (
            ("vat", "judging", True, True),
            ("vat", "not judging", True, False),
            ("labels", "judging", False, False),
        ):
            pool = run.but(config={**run.config, "method": method, "weights": weights}).collect()["pool"]
            assert (pool["used"], pool["judged_by_weighting"]) == (used, judged)


def test_scores_calibrated_on_training_examples_are_not_trusted(case):
    for judged in (False, True):
        pool = {"foreign_share": 0.5, "judged_by_weighting": judged}
        said = case(sizes={"validation": 0}, pool=pool)["why"]
        assert any("trained on" in sentence for sentence in said) == (not judged)


def test_the_truth_is_told_where_it_is_known(case, run):
    table = run.verdicts
    foreign = table["is_ood"] == 1
    dropped = table["verdict"] == "drop"
    sentence = next(s for s in case()["why"] if s.startswith("By the truth"))
    assert f"{foreign.sum()} members do not belong; {(foreign & dropped).sum()} of these were dropped" in sentence
    assert f"and {(~foreign & dropped).sum()} of the {(~foreign).sum()} that belong" in sentence
    assert not any("truth" in s for s in case(pool={"truth": None})["why"])


def test_skipped_files_are_something_to_do(case):
    assert any("2 files that could not be read" in sentence for sentence in case()["advice"])
    assert not any("could not be read" in s for s in case(skipped={"number": 0})["advice"])


@pytest.mark.parametrize(("rows", "right"), [(10, 0), (10, 10), (1, 1), (400, 325)])
def test_the_interval_is_wilsons(rows, right):
    expected = binomtest(right, rows).proportion_ci(method="wilson")
    assert wilson(right / rows, rows) == pytest.approx((expected.low, expected.high), abs=1e-4)


def test_words_for_numbers():
    assert percent(None) == "–"
    assert plural(1, "member") == "1 member"
    assert plural(1234, "member") == "1,234 members"
    assert [duration(s) for s in (None, 0.0125, 3.25, 300)] == ["–", "12.5 ms", "3.25 s", "5 min"]


def test_values_as_json_holds_them():
    found = jsonable(
        {1: np.float32(0.5), "n": (np.int64(3), np.inf, True, None), "path": Path("a"), "inner": {"x": {}}}
    )
    assert found == {"1": 0.5, "n": [3, None, True, None], "path": "a", "inner": {"x": {}}}
    assert [type(value) for value in (found["1"], found["n"][0])] == [float, int]


def test_a_nested_dictionary_as_rows():
    values = {"a": {"b": True, "c": {}, "d": [1, "x"]}, "e": 0.12345678, "f": None, "g": False, "left": "out"}
    rows = [("a.b", "yes"), ("a.c", "–"), ("a.d", "1, x"), ("e", "0.123457"), ("f", "–"), ("g", "no")]
    assert flat(values, skip=("left",)) == rows


def test_long_texts_lose_their_middle():
    assert shortened("abcdefghij", 10) == "abcdefghij"
    assert shortened("abcdefghijk", 10) == "abcde…hijk"
    assert shortened("bytes\udcff.png") == "bytes\\udcff.png"
