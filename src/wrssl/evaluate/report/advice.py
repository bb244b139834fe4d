"""What to do next, in plain sentences that follow from the numbers."""

from __future__ import annotations

import math
from typing import Any

from wrssl.evaluate.report.words import percent, plural
from wrssl.weighting.visits import FEW


def advice(data: dict[str, Any]) -> list[str]:
    """What to do next."""
    said, size, verdicts = [], data["pool"]["size"], data["pool"]["verdicts"]
    rate, chosen = false_drop_rate(data), data["metrics"].get("chosen")
    if ignores_pool(data):
        said.append("Train with a method that uses the pool, for example vat, before judging the pool.")
    elif had_no_say(data):
        said.append(
            "Find out why nearly nobody in the pool looks like the labelled examples, so that it had no say in the "
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
        said.append("Put some labelled examples aside as a test set, to know how often the model is right.")
    if data["skipped"]["number"]:
        said.append(
            f"Repair or remove the {plural(data['skipped']['number'], 'file')} that could not be read (listed below)."
        )
    return said


def ignores_pool(data: dict[str, Any]) -> bool:
    """Whether the method that was asked for trains on the labels alone."""
    return bool(data["config"].get("method") == "supervised")


def had_no_say(data: dict[str, Any]) -> bool:
    """Whether the default found so few members that belong that it trained on the labels alone."""
    return bool(data["config"].get("weights") == "wr" and data["pool"]["mean_weight"] <= FEW)


def false_drop_rate(data: dict[str, Any]) -> float:
    """The share of members that belong which may be dropped."""
    return float(data["config"].get("false_drop_rate", 0.05))


def reference(data: dict[str, Any]) -> int:
    """How many examples the scores were compared with."""
    return max(1, int(data["sizes"]["validation"] or data["sizes"]["labeled"]))
