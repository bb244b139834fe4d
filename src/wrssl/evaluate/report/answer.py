"""The answer in plain sentences. Each follows from numbers of the run; where one is unknown, that is said instead."""

from __future__ import annotations

import math
from typing import Any

from wrssl.evaluate.report.advice import advice, false_drop_rate, ignores_pool, reference
from wrssl.evaluate.report.words import count, percent, plural, wilson

MODELS = {
    "weighted": "training with weights",
    "plain": "plain training (every member of the pool counts fully)",
    "supervised": "training on the labels alone",
}
SHORT = {"weighted": "with weights", "plain": "plain", "supervised": "labels alone"}
COMPARES = ("wr", "prior")  # weightings whose ood_score compares the pool with the labels out of fold


def answer(data: dict[str, Any]) -> dict[str, list[str]]:
    """``lead`` (the answer), ``why`` (what it rests on) and ``advice`` (what to do)."""
    return {"lead": [accuracy(data), pool(data)], "why": [*choice(data), *foreign(data)], "advice": advice(data)}


def accuracy(data: dict[str, Any]) -> str:
    """How often the model is right."""
    metrics, rows = data["metrics"], data["sizes"]["test"]
    tested, validated = metrics.get("test_accuracy"), metrics.get("val_accuracy")
    if tested is not None:
        low, high = (percent(end) for end in wilson(tested, rows))
        interval = f"{percent(0.95, 0)} interval {low} to {high}"
        return f"The model is right on {percent(tested)} of {plural(rows, 'test example')} ({interval})."
    if validated is not None:
        return (
            "How often the model is right on new examples is unknown, since there is no test set; on the validation "
            f"labels that chose it, it is right on {percent(validated)}, which tends to flatter it."
        )
    return "How often the model is right is unknown, since there is neither a test nor a validation set."


def pool(data: dict[str, Any]) -> str:
    """What the verdicts say about the pool."""
    size, verdicts = data["pool"]["size"], data["pool"]["verdicts"]
    if ignores_pool(data):
        return f"It was trained on the labels alone, so the weights of the {plural(size, 'pool member')} say nothing."
    parts = {word: f"{count(n)} ({percent(n / size)})" for word, n in verdicts.items()}
    return (
        f"Of the {plural(size, 'pool member')} {parts['drop']} look foreign (verdict drop), {parts['doubt']} are in "
        f"doubt, and {parts['keep']} can be kept."
    )


def choice(data: dict[str, Any]) -> list[str]:
    """Which model was returned, and what it was compared with."""
    metrics, config = data["metrics"], data["config"]
    chosen, looks = metrics.get("chosen"), metrics.get("candidates") or {}
    if ignores_pool(data):
        return ["Whether the pool would help was not tried: the method ignores it."]
    if chosen is None:
        return [
            f"One model was trained ({config.get('method')}, weights {config.get('weights')}), so whether the pool "
            "helped at all was not compared."
        ]
    labels = data["sizes"]["validation"]
    half = "" if config.get("budget") == "paper" or labels < 2 else "half of "
    others = ", ".join(
        f"{SHORT[name]} {percent(look['val_accuracy'])}" for name, look in looks.items() if name != chosen
    )
    said = [
        f"Of {len(looks)} models, {MODELS[chosen]} did best on {half}the "
        f"{plural(labels, 'validation label')} and was returned: {percent(looks[chosen]['val_accuracy'])} ({others})."
    ]
    if sum(look["val_accuracy"] == looks[chosen]["val_accuracy"] for look in looks.values()) > 1:
        said.append("Equal accuracies were decided by the lower validation loss.")
    for name in MODELS:
        if name not in looks:
            said.append(f"The loss of {MODELS[name]} was not finite any more, so it was no candidate.")
    if chosen == "supervised":
        said.append("So the pool did not help here.")
    return said


def foreign(data: dict[str, Any]) -> list[str]:
    """How much of the pool is foreign, by the scores and by the truth where it is known."""
    said, rate = [], false_drop_rate(data)
    share, truth, size = data["pool"]["foreign_share"], data["pool"]["truth"], data["pool"]["size"]
    if share is None:
        said.append("How much of the pool is foreign is unknown: it was not compared with anything.")
    elif not _fair(data):
        said.append(
            "How much of the pool is foreign is unknown: without a validation set, the scores were calibrated on the "
            "very examples that the model was trained on, so members look more foreign than they are."
        )
    elif share <= 2 * math.sqrt(1 / size + 1 / reference(data)):
        said.append("By all scores together, the share of foreign members cannot be told from zero.")
    else:
        said.append(f"By all scores together, at least about {percent(share, 0)} of the pool is foreign.")
    said.append(f"The rule is made to drop no more than {percent(rate, 0)} of the members that belong.")
    if truth is not None:
        own = size - truth["foreign"]
        said.append(
            f"By the truth, which is known for this pool, {plural(truth['foreign'], 'member is', 'members are')} "
            f"foreign; {count(truth['drop']['foreign'])} of these were dropped, and {count(truth['drop']['own'])} of "
            f"the {count(own)} that belong."
        )
    return said


def _fair(data: dict[str, Any]) -> bool:
    """Whether the scores were compared with examples that the judge was not fitted to."""
    return data["sizes"]["validation"] > 0 or (data["config"].get("weights") in COMPARES and not ignores_pool(data))
