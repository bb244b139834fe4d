"""From a finished training to a ``Result``: the selected checkpoint, the test set once, verdicts on the pool.

The pool is walked over in chunks; what stays of a member is its row of the table and its weight.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from wrssl import progress
from wrssl.api import Context, DivergenceError, PredictionWeighting, Weighting
from wrssl.data import Scenario, prepare, torch_stream
from wrssl.evaluate import (
    NewSampleJudge,
    accuracy_and_loss,
    auroc,
    average_precision,
    energy,
    foreign_share,
    fpr_at_tpr,
    is_ood,
    logits_of,
    verdict_table,
)
from wrssl.judging import PoolJudge
from wrssl.runs import ReportSource, Result
from wrssl.training.assembly import Choice
from wrssl.training.loop import Trainer
from wrssl.training.step import of_members

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
    weighting = trainer.weighting
    judge_of_pool = weighting if used and isinstance(weighting, PoolJudge) else None
    rate = config["false_drop_rate"]
    truth = is_ood(scenario)
    verdicts = verdict_table(
        scenario.ids,
        _logits_in_parts(model, scenario.unlabeled),
        reference,
        weights,
        truth,
        None if judge_of_pool is None else judge_of_pool.clusters(),
        scenario.classes,
        rate,
        belonging=None if judge_of_pool is None else judge_of_pool.belonging,
    )
    metrics = {**_run_metrics(returned), **_pool_metrics(verdicts, weights, truth)}
    if choice is not None:
        metrics |= choice.metrics()
    test_logits = None
    if scenario.test is not None:
        x, y = scenario.test
        test_logits = logits_of(model, x)
        metrics["test_accuracy"], metrics["test_loss"] = accuracy_and_loss(test_logits, y)
    scorer = None if judge_of_pool is None else judge_of_pool.new_sample_scorer()
    new_samples = NewSampleJudge(-energy(reference).double().numpy(), rate, scorer, config["weights"])
    history = pd.DataFrame(returned.history)
    return Result(
        model, weights, verdicts, history, metrics, config, scenario.classes, new_samples, list(scenario.skipped),
        ReportSource(scenario, list(trainer.weight_rows), test_logits),
    )  # fmt: skip


def _weights(trainer: Trainer, size: int) -> NDArray[np.float64]:
    weighting = trainer.weighting
    if isinstance(weighting, PredictionWeighting):
        return weigh_anew(trainer, weighting)
    return final_weights(weighting, size)


def weigh_anew(trainer: Trainer, weighting: PredictionWeighting) -> NDArray[np.float64]:
    """The weight of every pool member by its loss and prediction in evaluation mode, with the method's own passes."""
    net, method, data, plan = trainer.net, trainer.method, trainer.data, trainer.plan
    x, y = data.labeled
    known = prepare(x[: plan.batch_size]).to(trainer.device), y[: plan.batch_size].to(trainer.device)
    weights, images = np.empty(len(data.unlabeled)), Counter(net.images)
    net.weights = None
    net.parts.eval()
    for network in method.networks():
        network.eval()
    for rows in progress.slices(len(data.unlabeled), plan.batch_size, "weighing the pool"):
        # The names of the streams are those of version 0.1.0.
        augment, attack = (torch_stream(plan.seed, f"appraisal {kind}", rows.start) for kind in ("looks", "attack"))
        changes = data.changes_of_pool(rows)
        context = Context(plan.steps, plan.steps, augment, attack, data.noise, data.epsilon, changes, known)
        views = method.views(net, prepare(data.unlabeled[rows]).to(trainer.device), context)
        with torch.no_grad():
            logits = net.head(views.features)
            size, rows_of = rows.stop - rows.start, (method.loss(logits, views.targets), logits.softmax(1))
            losses, probabilities = (of_members(views, values, size) for values in rows_of)
            weights[rows] = weighting.weigh(losses, probabilities).cpu().numpy()
    for network in method.networks():
        network.train()
    # Only the passes that training needed are counted.
    net.images.clear()
    net.images.update(images)
    return weights


def final_weights(weighting: Weighting, size: int) -> NDArray[np.float64]:
    """The weight of every member, in chunks: eight bytes per member and the memory of one chunk."""
    weights = np.empty(size)
    for start in range(0, size, CHUNK):
        index = torch.arange(start, min(start + CHUNK, size))
        weights[start : start + CHUNK] = weighting.batch(index).weight.cpu().numpy()
    return weights


def _logits_in_parts(model: nn.Module, pool: Tensor) -> Iterator[Tensor]:
    for rows in progress.slices(len(pool), CHUNK, "judging the pool"):
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
