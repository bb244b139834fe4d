"""From a finished training to a ``Result``: the selected checkpoint, the test set once, verdicts on the pool.

The pool is walked over in chunks; what stays of a member is its row of the table and its weight.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from wrssl.api import DivergenceError, Weighting
from wrssl.data import Scenario
from wrssl.evaluate.foreign import foreign_share
from wrssl.evaluate.infer import accuracy_and_loss, logits_of
from wrssl.evaluate.metrics import auroc, average_precision, fpr_at_tpr
from wrssl.evaluate.newcomers import NewcomerJudge
from wrssl.evaluate.truth import is_ood
from wrssl.evaluate.verdicts import energy, verdict_table
from wrssl.progress import slices
from wrssl.training.appraise import appraise, judges_anew
from wrssl.training.fallback import Choice
from wrssl.training.loop import Trainer
from wrssl.training.page import PageSource
from wrssl.training.result import Result

if TYPE_CHECKING:
    import pandas as pd

CHUNK = 10_000  # members at once; a multiple of the batch of logits_of, so that every batch but the last is full


def judge(scenario: Scenario, trainer: Trainer, config: dict[str, Any], choice: Choice | None = None) -> Result:
    """Everything that is said about a run; the only place that looks at the test set and, for metrics, at the truth.

    Args:
        scenario: the data.
        trainer: the finished training whose weighting judges the pool.
        config: the settings.
        choice: the model that is returned, where the fallback had a say; its predictions fill the table.
    """
    import pandas as pd

    trainer.take_best()
    returned = trainer if choice is None else choice.trainer
    returned.take_best()
    model, used = returned.net.module.eval(), trainer.method.uses_unlabeled
    size = len(scenario.unlabeled)
    weights = _weights(trainer, size) if used else np.zeros(size)
    reference = logits_of(model, scenario.labeled[0] if scenario.validation is None else scenario.validation[0])
    if not bool(reference.isfinite().all()):
        raise DivergenceError("The predictions of the trained network are not finite; lower lr, or scale the data.")
    rate = config["false_drop_rate"]
    truth = is_ood(scenario)
    verdicts = verdict_table(
        scenario.ids,
        _logits_in_parts(model, scenario.unlabeled),
        reference,
        weights,
        truth,
        trainer.weighting.clusters() if used else None,
        scenario.classes,
        rate,
        belonging=trainer.weighting.belonging if used else None,
    )
    metrics = {**_run_metrics(returned), **_pool_metrics(verdicts, weights, truth)}
    if choice is not None:
        metrics |= choice.metrics()
    test_logits = None
    if scenario.test is not None:
        x, y = scenario.test
        test_logits = logits_of(model, x)
        metrics["test_accuracy"], metrics["test_loss"] = accuracy_and_loss(test_logits, y)
    newcomers = NewcomerJudge(
        -energy(reference).double().numpy(), rate, trainer.weighting.for_newcomers() if used else None
    )
    history = pd.DataFrame(returned.history)
    return Result(
        model, weights, verdicts, history, metrics, config, scenario.classes, newcomers, list(scenario.skipped),
        PageSource(scenario, list(trainer.weight_rows), test_logits),
    )  # fmt: skip


def _weights(trainer: Trainer, size: int) -> NDArray[np.float64]:
    return appraise(trainer) if judges_anew(trainer.weighting) else final_weights(trainer.weighting, size)


def final_weights(weighting: Weighting, size: int) -> NDArray[np.float64]:
    """The weight of every member; only the chunk that is asked for needs more than its eight bytes per member."""
    weights = np.empty(size)
    for start in range(0, size, CHUNK):
        index = torch.arange(start, min(start + CHUNK, size))
        weights[start : start + CHUNK] = weighting.weights(index).cpu().numpy()
    return weights


def _logits_in_parts(model: nn.Module, pool: Tensor) -> Iterator[Tensor]:
    for rows in slices(len(pool), CHUNK, "judging the pool"):
        yield logits_of(model, pool[rows])


def _run_metrics(trainer: Trainer) -> dict[str, Any]:
    best, net = trainer.best, trainer.net
    return {
        "test_accuracy": None,
        "test_loss": None,
        "val_accuracy": best.accuracy if best.state else None,
        "val_loss": best.loss if best.state else None,
        "last_val_accuracy": trainer.history[-1]["val_accuracy"] if trainer.history else None,
        "best_step": best.step,
        "optimizer_steps": trainer.done,
        "skipped_steps": trainer.skipped_steps(),
        "chosen": None,
        "fallback_steps": 0,
        "images_forwarded": net.images_forwarded(),
        "images": {kind.value: count for kind, count in sorted(net.images.items())},
        "seconds_per_step": trainer.seconds_per_step(),
        "world_size": 1 if net.devices.group is None else net.devices.group.size,
    }


def _pool_metrics(verdicts: pd.DataFrame, weights: NDArray[np.float64], truth: Tensor | None) -> dict[str, Any]:
    """Scores against the truth; None where it is unknown, or where the pool holds one kind of member only."""
    names = ("auroc", "fpr95", "aupr")
    foreign = None if truth is None else truth.numpy()
    found: dict[str, Any] = {"foreign_share": foreign_share(verdicts["ood_score"].to_numpy())}
    for what, score, sign in (("ood", verdicts["ood_score"].to_numpy(), 1), ("weight", weights, -1)):
        for name, measure in zip(names, (auroc, fpr_at_tpr, average_precision), strict=True):
            # A weight is a detector too: those that belong should have the higher one.
            positive = foreign if foreign is None or sign > 0 else ~foreign
            found[f"{what}_{name}"] = None if positive is None else measure(score, positive)
    dropped = (verdicts["verdict"] == "drop").to_numpy()
    for name, values in (("mean_weight", weights), ("drop_rate", dropped)):
        for group, part in (("id", None if foreign is None else ~foreign), ("ood", foreign)):
            known = part is not None and part.any()
            found[f"{name}_{group}"] = float(values[part].mean()) if known else None
    return found
