"""The answer and the advice in plain sentences. Each follows from numbers of the run; what is unknown is called so."""

from __future__ import annotations

import math
from typing import Any

from wrssl.evaluate.report.collect import pool_facts
from wrssl.evaluate.report.text import count, percent, plural
from wrssl.evaluate.verdicts import FALSE_DROP_RATE

MODELS = {
    "weighted": "training with weights",
    "plain": "plain training (every member of the pool counts fully)",
    "supervised": "training on the labels alone",
}
SHORT = {"weighted": "with weights", "plain": "plain", "supervised": "labels alone"}
NO_SAY = 0.01  # a pool whose mean weight is at most this had hardly any influence


def answer(data: dict[str, Any]) -> dict[str, list[str]]:
    """``lead`` (the answer), ``why`` (what it rests on) and ``advice`` (what to do)."""
    why = [*which_model(data), *how_much_belongs(data)]
    return {"lead": [accuracy(data), verdicts_on_pool(data)], "why": why, "advice": advice(data)}


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


def verdicts_on_pool(data: dict[str, Any]) -> str:
    """What the verdicts say about the pool."""
    size, verdicts = data["pool"]["size"], data["pool"]["verdicts"]
    if ignores_pool(data):
        return f"It was trained on the labels alone, so the weights of the {plural(size, 'pool member')} say nothing."
    parts = {word: f"{count(n)} ({percent(n / size)})" for word, n in verdicts.items()}
    return (
        f"Of the {plural(size, 'pool member')} {parts['drop']} do not seem to belong (verdict drop), {parts['doubt']} "
        f"are in doubt, and {parts['keep']} can be kept."
    )


def which_model(data: dict[str, Any]) -> list[str]:
    """Which model was returned, and what it was compared with."""
    metrics, config = data["metrics"], data["config"]
    chosen, candidates = metrics.get("chosen"), metrics.get("candidates") or {}
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
        f"{SHORT[name]} {percent(found['val_accuracy'])}" for name, found in candidates.items() if name != chosen
    )
    said = [
        f"Of {len(candidates)} models, {MODELS[chosen]} did best on {half}the "
        f"{plural(labels, 'validation label')} and was returned: {percent(candidates[chosen]['val_accuracy'])} "
        f"({others})."
    ]
    if sum(found["val_accuracy"] == candidates[chosen]["val_accuracy"] for found in candidates.values()) > 1:
        said.append("Equal accuracies were decided by the lower validation loss.")
    for name in MODELS:
        if name not in candidates:
            said.append(f"The loss of {MODELS[name]} was not finite any more, so it was no candidate.")
    if chosen == "supervised":
        said.append("So the pool did not help here.")
    return said


def how_much_belongs(data: dict[str, Any]) -> list[str]:
    """How much of the pool does not belong, by the scores and by the truth where it is known."""
    said, rate = [], false_drop_rate(data)
    share, truth, size = data["pool"]["foreign_share"], data["pool"]["truth"], data["pool"]["size"]
    if share is None:
        said.append("How much of the pool does not belong is unknown: it was not compared with anything.")
    elif not data["sizes"]["validation"] and not judged_by_weighting(data):
        said.append(
            "How much of the pool does not belong is unknown: without a validation set, the scores were calibrated on "
            "the very examples that the model was trained on, so fewer members seem to belong than do."
        )
    elif share <= 2 * math.sqrt(1 / size + 1 / reference(data)):
        said.append("By all scores together, the share of members that do not belong cannot be told from zero.")
    else:
        said.append(f"By all scores together, about {percent(share, 0)} of the pool looks foreign.")
    said.append(f"The rule is made to drop no more than {percent(rate, 0)} of the members that belong.")
    if truth is not None:
        belong = size - truth["foreign"]
        said.append(
            f"By the truth, which is known for this pool, {plural(truth['foreign'], 'member does', 'members do')} not "
            f"belong; {count(truth['drop']['foreign'])} of these were dropped, and {count(truth['drop']['own'])} of "
            f"the {count(belong)} that belong."
        )
    return said


def advice(data: dict[str, Any]) -> list[str]:
    """What to do next."""
    said, size, verdicts = [], data["pool"]["size"], data["pool"]["verdicts"]
    rate, chosen = false_drop_rate(data), data["metrics"].get("chosen")
    if ignores_pool(data):
        said.append("Train with a method that uses the pool, for example vat, before judging the pool.")
    elif judged_by_weighting(data) and data["pool"]["mean_weight"] <= NO_SAY:
        said.append(
            "Find out why hardly any member of the pool looks like the labeled examples, so that it had no say in the "
            "weighted training: were both recorded and prepared in the same way? If the pool is right, label some of "
            "it or give an embedding."
        )
    elif verdicts["drop"] / size > rate + 2 * math.sqrt(rate * (1 - rate) * (1 / size + 1 / reference(data))):
        unhurt = "Plain training did best, so accuracy does not ask for a cleaner pool; if it should be clean anyway, t"
        said.append(
            f"{unhurt if chosen == 'plain' else 'T'}ake the {plural(verdicts['drop'], 'member')} with the verdict drop "
            "out of the pool, after a look at them: some may belong."
        )
    else:
        said.append(
            f"The pool can stay as it is: no more members are dropped ({percent(verdicts['drop'] / size)}) than one "
            "would expect of a pool in which all belong."
        )
    if chosen == "supervised":
        said.append(
            "Use the returned model, which has not seen the pool: training on this pool did not make it better."
        )
    if verdicts["doubt"] and not ignores_pool(data):
        said.append(
            f"Look at the {plural(verdicts['doubt'], 'member')} in doubt when there is time: each is worth a glance."
        )
    if data["sizes"]["test"] == 0:
        said.append("Put some labeled examples aside as a test set, to know how often the model is right.")
    if data["skipped"]["number"]:
        said.append(
            f"Repair or remove the {plural(data['skipped']['number'], 'file')} that could not be read (listed below)."
        )
    return said


def ignores_pool(data: dict[str, Any]) -> bool:
    """Whether the method that was asked for trains on the labels alone."""
    return not _facts(data)["used"]


def judged_by_weighting(data: dict[str, Any]) -> bool:
    """Whether the weighting's own comparison of the pool with the labels made the scores, not the network's energy."""
    return _facts(data)["judged_by_weighting"]


def _facts(data: dict[str, Any]) -> dict[str, bool]:
    return {**pool_facts(data["config"]), **data["pool"]}  # version 0.1.0 did not store them


def false_drop_rate(data: dict[str, Any]) -> float:
    """The share of members that belong which may be dropped."""
    return float(data["config"].get("false_drop_rate", FALSE_DROP_RATE))


def reference(data: dict[str, Any]) -> int:
    """How many examples the scores were compared with."""
    return max(1, int(data["sizes"]["validation"] or data["sizes"]["labeled"]))


def wilson(share: float, rows: int, z: float = 1.96) -> tuple[float, float]:
    """The 95 % interval of a share of ``rows`` trials (Wilson, 1927); unlike share ± 1.96 s it stays in [0, 1]."""
    center = (share + z * z / (2 * rows)) / (1 + z * z / rows)
    half = z / (1 + z * z / rows) * math.sqrt(share * (1 - share) / rows + z * z / (4 * rows * rows))
    return max(0.0, center - half), min(1.0, center + half)
