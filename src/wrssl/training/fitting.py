"""``wrssl.fit``: from a scenario to a trained model and verdicts."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from torch import nn

from wrssl.api import DivergenceError
from wrssl.data import Scenario
from wrssl.data.patience import silence
from wrssl.evaluate.verdicts import FALSE_DROP_RATE
from wrssl.norm.native import native_kernels
from wrssl.training.assembly import DEFAULT_WEIGHTS, assemble
from wrssl.training.callbacks import Callback
from wrssl.training.fallback import WEIGHTED, choose
from wrssl.training.files import write_json
from wrssl.training.interrupt import patient_interrupt
from wrssl.training.judge import judge
from wrssl.training.loop import Trainer
from wrssl.training.progress import ProgressBar, someone_watches
from wrssl.training.result import Result
from wrssl.training.rundir import CONFIG, STATE, claim
from wrssl.training.state import NUMBERS, Checkpointer, load_state, save_state
from wrssl.training.steps import choose_steps
from wrssl.training.threads import threads as use_threads
from wrssl.training.weight_history import WeightHistory


def fit(
    scenario: Scenario,
    model: str | nn.Module = "auto",
    method: str = "vat",
    weights: str = DEFAULT_WEIGHTS,
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
    threads: int | None = None,
    fast: bool = True,
    false_drop_rate: float = FALSE_DROP_RATE,
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
        gate: ``"cosine"`` leaves the pool out of every step in which its gradient opposes that of the labels; None
            lets it always take part.
        fallback: with the weighting ``wr``, train a plain and a supervised model too and return the best of the three
            on the select half of the validation set; it takes two to three times as long. Other weightings, and data
            with fewer than 30 select examples, ignore it.
        out: a new run directory to write everything into.
        device: for example ``"cuda"``; None takes a GPU where there is one.
        method_options: options of the method, for example ``{"eps": 3.0}``.
        weight_options: options of the weighting, for example ``{"K": 20, "L": 5}``.
        batch_size: of the labelled, the unlabelled and the validation batch, each.
        lr: learning rate; None takes the method's.
        budget: ``"halves"`` splits the validation set into a meta and a select half; ``"paper"`` uses all of it for
            both, as the paper does.
        head: the name of the last layer of your own module, where it cannot be found by tracing.
        progress: show a progress bar; None shows one where standard error is a terminal; with False the run is silent.
        callbacks: watchers.
        resume: go on with the run in ``out``.
        threads: of torch, while this runs; None takes one for small networks and all that torch may use for others.
        fast: use the kernels of ``wrssl.fast`` and the native weighted batch norm where they apply. False computes the
            same, up to rounding, layer by layer.
        false_drop_rate: the share of members that belong which may get the verdict ``drop``.
    """
    made = assemble(
        scenario, model=model, method=method, weights=weights, bn=bn, steps=steps, seed=seed, gate=gate,
        fallback=fallback, device=device, method_options=method_options, weight_options=weight_options,
        batch_size=batch_size, lr=lr, budget=budget, head=head, threads=threads, fast=fast,
        false_drop_rate=false_drop_rate,
    )  # fmt: skip
    main, others, config = made.main, made.others, made.config
    shown = progress if progress is not None else someone_watches()
    with use_threads(made.threads), native_kernels(fast), silence(progress is False):
        main.look_at_the_pool()
        config["steps"] = choose_steps(steps, scenario, main.trainer, 1 + len(others), progress is not False)
        folder = None if out is None else Path(out) if resume else claim(out)
        if folder is not None and not (folder / CONFIG).is_file():
            write_json(folder / CONFIG, config)
        trained: dict[str, Trainer] = {}
        for name, candidate in {WEIGHTED: main, **others}.items():
            watchers = [*(callbacks if candidate is main else ()), *([ProgressBar(candidate.title)] if shown else [])]
            trainer = candidate.trainer(config["steps"], watchers)
            if candidate.method.uses_unlabeled:
                looks = WeightHistory(candidate.weighting, len(scenario.unlabeled), trainer.weight_rows)
                trainer.callbacks.insert(0, looks)  # before the checkpoint, which holds them
            state = None if folder is None else folder / STATE if candidate is main else folder / STATE / name
            try:
                _train(trainer, state, _advice(folder))
            except DivergenceError:
                if candidate is main:
                    raise
                continue  # plain training may well break down on such a pool; it is not chosen then
            trained[name] = trainer
        result = judge(scenario, trained[WEIGHTED], config, choose(trained) if others else None)
    if folder is not None:
        result.write_outputs(folder)
    return result


def _advice(folder: Path | None) -> str:
    return (
        "nothing was kept, as there is no run directory." if folder is None else f"go on: wrssl fit --resume {folder}"
    )


def _train(trainer: Trainer, folder: Path | None, advice: str) -> None:
    """Train, or go on training; ``folder`` keeps the state, also when Ctrl-C ends this early."""
    if folder is not None and (folder / NUMBERS).is_file():
        load_state(trainer, folder)
    with patient_interrupt() as asked:
        trainer.callbacks.append(Checkpointer(trainer, folder, asked, advice))
        trainer.run()
    if folder is not None:
        save_state(trainer, folder)
