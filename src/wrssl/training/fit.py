"""``wrssl.fit``: from a scenario to a trained model and verdicts."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn

from wrssl import __version__
from wrssl.api import Method, OptionError, Pool, Weighting
from wrssl.data import Scenario
from wrssl.evaluate.infer import accuracy_and_loss, logits_of
from wrssl.evaluate.metrics import auroc, fpr_at_tpr
from wrssl.evaluate.truth import is_ood
from wrssl.evaluate.verdicts import verdict_table
from wrssl.methods import METHODS
from wrssl.norm import policy_table
from wrssl.training.callbacks import Callback
from wrssl.training.data import TrainingData
from wrssl.training.embedding import PoolEmbedding
from wrssl.training.files import write_json
from wrssl.training.loop import Plan, Trainer
from wrssl.training.network import build_network, find_device
from wrssl.training.passes import PolicyNet
from wrssl.training.progress import ProgressBar, someone_watches
from wrssl.training.randomness import stream, stream_seed
from wrssl.training.result import CONFIG, STATE, Result, claim
from wrssl.training.state import NUMBERS, Checkpointer, load_state, save_state
from wrssl.training.steps import choose_steps
from wrssl.weighting import WEIGHTINGS

EVALUATIONS = 20  # per run, but at least one every 100 steps


def fit(
    scenario: Scenario,
    model: str | nn.Module = "auto",
    method: str = "vat",
    weights: str = "wr-cluster",
    bn: str = "weighted",
    steps: int | str = "auto",
    seed: int = 0,
    gate: str | None = None,
    fallback: bool = True,
    out: str | os.PathLike[str] | None = None,
    device: str | torch.device | None = None,
    *,
    method_options: dict[str, Any] | None = None,
    weight_options: dict[str, Any] | None = None,
    batch_size: int = 100,
    lr: float | None = None,
    budget: str = "halves",
    head: str | None = None,
    progress: bool | None = None,
    callbacks: Sequence[Callback] = (),
    resume: bool = False,
) -> Result:
    """Train a classifier on few labels and a pool that may contain anything.

    Args:
        scenario: the data.
        model: ``"auto"`` (by the data's shape), ``"mlp"``, ``"lenet"``, ``"small_cnn"``, ``"wrn-28-2"``, each also with
            ``"-nobn"``, or any ``nn.Module`` whose last layer is Linear; your module itself is not changed.
        method: a name from ``list_methods()``.
        weights: a name from ``list_weightings()``.
        bn: which statistics the passes over the pool use: ``batch``, ``frozen``, ``eval``, ``weighted``.
        steps: optimiser steps; ``"auto"`` is 2,000 for named scenarios, and for own data chosen from its size and a
            measured step time, at most two minutes on this machine.
        seed: every random number follows from it.
        gate: no gate exists yet; None.
        fallback: concerns the weighting ``wr`` only, which does not exist yet.
        out: a new run directory to write everything into.
        device: for example ``"cuda"``; None takes a GPU where there is one.
        method_options: options of the method, for example ``{"eps": 3.0}``.
        weight_options: options of the weighting, for example ``{"K": 20, "L": 5}``.
        batch_size: of the labelled, the unlabelled and the validation batch, each.
        lr: learning rate; None takes the method's.
        budget: ``"halves"`` splits the validation set into a meta and a select half; ``"paper"`` uses all of it for
            both, as the paper does.
        head: the name of the last layer of your own module, where it cannot be found by tracing.
        progress: show a progress bar; None shows one where standard error is a terminal.
        callbacks: watchers.
        resume: go on with the run in ``out``.
    """
    policy_table(bn)
    if gate is not None:
        raise OptionError(f"There is no gate {gate!r} in this version; leave gate=None.")
    if seed < 0:
        raise OptionError(f"seed must not be negative, but it is {seed}.")
    if batch_size < 2:
        raise OptionError(f"batch_size must be at least 2, since batch norm needs statistics; it is {batch_size}.")
    place = find_device(device)
    base, weighting = METHODS.create(method, method_options), WEIGHTINGS.create(weights, weight_options)
    data = TrainingData.of(scenario, seed, budget)
    net = build_network(scenario, model, bn, head, seed, place)
    rate = base.lr if lr is None else lr
    if not rate > 0:
        raise OptionError(f"lr must be above 0, but it is {rate}.")
    watchers: list[Callback] = list(callbacks)
    base.setup(net)
    if base.uses_unlabeled:
        weighting.setup(_pool(scenario, weighting, net, place, seed))

    number = choose_steps(steps, scenario, lambda n: _trainer(data, net, base, weighting, n, batch_size, rate, seed, place))
    config = {
        "wrssl": __version__,
        "torch": torch.__version__,
        "threads": torch.get_num_threads(),
        "scenario": getattr(scenario, "recipe", None) or {"name": scenario.name},
        "model": model if isinstance(model, str) else "own module",
        "method": method,
        "method_options": method_options or {},
        "weights": weights,
        "weight_options": {k: v if isinstance(v, (int, float, str)) else "array" for k, v in (weight_options or {}).items()},
        "bn": bn,
        "steps": number,
        "seed": seed,
        "batch_size": batch_size,
        "lr": rate,
        "budget": budget,
        "device": str(place),
        "input_shape": list(scenario.input_shape),
        "num_classes": scenario.num_classes,
        "classes": scenario.classes.tolist(),
        "labels": len(scenario.labeled[1]),
        "pool": len(scenario.unlabeled),
        "validation": 0 if scenario.validation is None else len(scenario.validation[1]),
    }
    folder = None
    if out is not None:
        folder = Path(out) if resume else claim(out)
        if not resume:
            write_json(folder / CONFIG, config)
        watchers.append(Checkpointer(folder / STATE))
    if progress if progress is not None else someone_watches():
        watchers.append(ProgressBar(f"{method} · {weights} · {bn}"))
    trainer = _trainer(data, net, base, weighting, number, batch_size, rate, seed, place, watchers)
    for watcher in watchers:
        if isinstance(watcher, Checkpointer):
            watcher.trainer = trainer
    if resume and folder is not None and (folder / STATE / NUMBERS).is_file():
        load_state(trainer, folder / STATE)
    trainer.run()
    if folder is not None:
        save_state(trainer, folder / STATE)
    result = _judge(scenario, trainer, base, weighting, config)
    if folder is not None:
        result.write_outputs(folder)
    return result


def _pool(scenario: Scenario, weighting: Weighting, net: PolicyNet, device: torch.device, seed: int) -> Pool:
    embed = PoolEmbedding(scenario.unlabeled, net, device, stream(seed, "embedding"))
    truth = is_ood(scenario) if weighting.wants_truth else None
    return Pool(len(scenario.unlabeled), scenario.num_classes, embed, stream_seed(seed, "weighting"), truth)


def _trainer(
    data: TrainingData,
    net: PolicyNet,
    method: Method,
    weighting: Weighting,
    steps: int,
    batch_size: int,
    lr: float,
    seed: int,
    device: torch.device,
    callbacks: Sequence[Callback] = (),
) -> Trainer:
    eval_every = max(1, min(100, steps // EVALUATIONS))
    plan = Plan(steps, batch_size, lr, seed, eval_every)
    return Trainer(data, net, method, weighting, plan, device, callbacks)


def _judge(
    scenario: Scenario, trainer: Trainer, method: Method, weighting: Weighting, config: dict[str, Any]
) -> Result:
    """The selected checkpoint on the test set, once; verdicts on the pool; all metrics."""
    import pandas as pd

    trainer.take_best()
    net, best = trainer.net, trainer.best
    model = net.module.eval()
    size = len(scenario.unlabeled)
    weights = np.zeros(size)
    if method.uses_unlabeled:
        weights = weighting.weights(torch.arange(size)).double().cpu().numpy()
    reference = scenario.labeled[0] if scenario.validation is None else scenario.validation[0]
    truth = is_ood(scenario)
    verdicts = verdict_table(
        scenario.ids,
        logits_of(model, scenario.unlabeled),
        logits_of(model, reference),
        weights,
        truth,
        weighting.clusters() if method.uses_unlabeled else None,
        scenario.classes,
    )
    metrics: dict[str, Any] = {
        "test_accuracy": None,
        "val_accuracy": best.accuracy if best.state else None,
        "last_val_accuracy": trainer.history[-1]["val_accuracy"] if trainer.history else None,
        "best_step": best.step,
        "ood_auroc": None,
        "ood_fpr95": None,
        "weight_auroc": None,
        "mean_weight_id": None,
        "mean_weight_ood": None,
        "optimizer_steps": trainer.done,
        "fallback_steps": 0,
        "images_forwarded": net.images_forwarded(),
        "images": {kind.value: count for kind, count in net.images.items()},
        "seconds_per_step": trainer.seconds_per_step(),
        "world_size": 1,
    }
    if scenario.test is not None:
        x, y = scenario.test
        metrics["test_accuracy"], metrics["test_loss"] = accuracy_and_loss(logits_of(model, x), y)
    if truth is not None:
        foreign = truth.numpy()
        score = verdicts["ood_score"].to_numpy()
        metrics["ood_auroc"], metrics["ood_fpr95"] = auroc(score, foreign), fpr_at_tpr(score, foreign)
        metrics["weight_auroc"] = auroc(weights, ~foreign)
        metrics["mean_weight_id"] = float(weights[~foreign].mean()) if (~foreign).any() else None
        metrics["mean_weight_ood"] = float(weights[foreign].mean()) if foreign.any() else None
    history = pd.DataFrame(trainer.history)
    return Result(model, weights, verdicts, history, metrics, config, scenario.classes)
