"""Confusion and calibration against a second computation, and on which labels they are made."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from sklearn.metrics import confusion_matrix

from wrssl.evaluate import logits_of
from wrssl.evaluate.report.collect import confusion, judge_labels, reliability


@pytest.fixture
def logits_and_labels(generator):
    logits = 2 * torch.randn(500, 4, generator=generator)
    return logits, torch.randint(0, 4, (500,), generator=generator)


def test_the_matrix_is_that_of_scikit_learn(logits_and_labels):
    logits, y = logits_and_labels
    found = confusion(logits, y, 5)  # one class never occurs
    expected = confusion_matrix(y.numpy(), logits.argmax(1).numpy(), labels=range(5))
    assert found["matrix"] == expected.tolist()
    assert found["right"] == np.trace(expected)


def test_confusions_are_sorted_and_say_how_many_rows_the_class_has():
    y = torch.tensor([0] * 5 + [1] * 4 + [2] * 2)
    said = torch.tensor([1, 1, 1, 0, 0, 2, 1, 1, 1, 0, 2])
    found = confusion(torch.eye(3)[said], y, 3)
    assert found["confusions"] == [[3, 0, 1, 5], [1, 1, 2, 4], [1, 2, 0, 2]]


def test_many_classes_have_no_matrix(generator):
    y = torch.randint(0, 60, (300,), generator=generator)
    found = confusion(torch.randn(300, 60, generator=generator), y, 60)
    assert found["matrix"] is None
    assert len(found["confusions"]) == 20


def test_the_calibration_error_is_that_of_a_plain_loop(logits_and_labels):
    logits, y = logits_and_labels
    bins = [[] for _ in range(10)]
    for row, label in zip(logits.double().softmax(1).tolist(), y.tolist(), strict=True):
        p = max(row)
        number = next(k for k in range(10) if k / 10 < p <= (k + 1) / 10)
        bins[number].append((p, row.index(p) == label))
    error = sum(
        len(part) / 500 * abs(np.mean([r for _, r in part]) - np.mean([p for p, _ in part])) for part in bins if part
    )
    found = reliability(logits, y)
    assert found["ece"] == pytest.approx(error, abs=1e-12)
    assert error > 0.05  # the loop found something to agree about
    assert [row["count"] for row in found["bins"]] == [len(part) for part in bins]
    last = found["bins"][-1]
    assert last["accuracy"] == pytest.approx(np.mean([r for _, r in bins[-1]]))
    assert found["bins"][0] == {"count": 0, "confidence": None, "accuracy": None}


def test_a_bin_holds_its_upper_end():
    found = reliability(torch.zeros(4, 2), torch.tensor([0, 0, 0, 1]))  # every p is ½
    assert [row["count"] for row in found["bins"]] == [0, 0, 0, 0, 4, 0, 0, 0, 0, 0]
    assert found["ece"] == pytest.approx(0.25)


def test_certainty_is_in_the_last_bin():
    found = reliability(torch.tensor([[100.0, 0.0]]), torch.tensor([0]))
    assert found["bins"][-1]["count"] == 1
    assert found["ece"] == pytest.approx(0)


@pytest.mark.parametrize(
    ("test", "validation", "part", "rows"),
    [(True, True, "test", 90), (False, True, "validation", 40), (False, False, "labeled", 6)],
)
def test_the_best_labels_there_are(make, test, validation, part, rows):
    run = make(test=test, validation=validation)
    found = judge_labels(run.scenario, run.model)
    assert (found["part"], found["rows"]) == (part, rows)
    x, y = getattr(run.scenario, part)
    assert found["right"] == int((logits_of(run.model, x).argmax(1) == y).sum())


def test_logits_that_are_known_are_not_computed_again(run):
    _, y = run.scenario.test
    found = judge_labels(run.scenario, torch.nn.Identity(), torch.eye(3)[y])
    assert found["right"] == len(y)
