"""``wrssl.fit``: from a scenario to a trained model and verdicts."""

from __future__ import annotations

import copy
import os
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import torch
from torch import nn

from wrssl.api import DivergenceError
from wrssl.data import Scenario
from wrssl.evaluate.verdicts import FALSE_DROP_RATE
from wrssl.norm.native import native_kernels
from wrssl.parallel import check_devices, launch, own_device
from wrssl.progress import silent
from wrssl.training.assembly import DEFAULT_WEIGHTS, Assembly, assemble
from wrssl.training.callbacks import Callback
from wrssl.training.checkpointer import Checkpointer
from wrssl.training.fallback import WEIGHTED, choose
from wrssl.training.files import sha256_of, storing
from wrssl.training.interrupt import patient_interrupt
from wrssl.training.judge import judge
from wrssl.training.lock import lock_run, new_run
from wrssl.training.loop import Trainer
from wrssl.training.network import find_device
from wrssl.training.progress import ProgressBar, someone_watches
from wrssl.training.result import Result
from wrssl.training.rundir import CONFIG, STATE, check_free, is_finished, read_config
from wrssl.training.settings import check_same
from wrssl.training.steps import choose_steps
from wrssl.training.stored import load
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
    devices: int = 1,
    strategy: str = "auto",
    precision: str = "32-true",
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
        devices: processes that share the passes, one per device; more than one runs your program that many times, and
            needs ``wrssl[distributed]``. All of them return the same result; the first one writes and talks.
        strategy: ``"ddp"``, which ``"auto"`` means too, or on GPUs ``"fsdp"``.
        precision: ``"32-true"``, or ``"bf16-mixed"``: passes through the backbone are computed in bfloat16.
    """
    place = own_device(str(find_device(device)), devices)
    check_devices(devices, strategy, precision, torch.device(place).type)
    folder = None if out is None else Path(out)
    with ExitStack() as held:
        stored: dict[str, Any] = {}
        if folder is not None and resume and (folder / CONFIG).is_file():
            if not is_finished(folder):  # which is read without a lock: a lock would be a change
                held.enter_context(lock_run(folder))
            if is_finished(folder):
                return load(folder, None if isinstance(model, str) else copy.deepcopy(model))
            stored = read_config(folder)
            steps = stored["steps"] if steps == "auto" else steps
            threads = stored["threads"] if threads is None else threads
        elif folder is not None:
            check_free(folder)  # said before the work; claimed when the options are found good
        made = assemble(
            scenario, model=model, method=method, weights=weights, bn=bn, steps=steps, seed=seed, gate=gate,
            fallback=fallback, device=place, method_options=method_options, weight_options=weight_options,
            batch_size=batch_size, lr=lr, budget=budget, head=head, threads=threads, fast=fast,
            false_drop_rate=false_drop_rate,
        )  # fmt: skip
        main, others, config = made.main, made.others, made.config
        config |= {"devices": devices, "strategy": strategy, "precision": precision}
        started = launch(devices, strategy, precision, torch.device(place).type)  # all options have been found good
        made.use(started)
        lead, group = started.lead, started.group
        if not lead:
            progress, callbacks = False, ()
        number = (
            made.threads if threads is not None else max(1, made.threads // devices)
        )  # the processes share the cores
        with use_threads(number), native_kernels(fast), silent(progress is False):
            main.look_at_the_pool()
            config["steps"] = choose_steps(steps, scenario, main.trainer, 1 + len(others), progress is not False)
            if group is not None:  # a number that was measured
                config["steps"] = group.from_leader(config["steps"])
            if stored and folder is not None:
                check_same(config, stored, folder)
            elif folder is not None and lead:
                held.enter_context(new_run(folder, config))
            if group is not None:  # now the settings are there for all to see
                group.from_leader(None)
            trained = _train_all(made, folder, callbacks, someone_watches() if progress is None else progress)
            result = judge(scenario, trained[WEIGHTED], config, choose(trained) if others else None)
        if folder is not None and lead:
            with storing(f"The result in {folder}", _advice(folder)):
                result.write_outputs(folder)
        return result


def _train_all(made: Assembly, folder: Path | None, callbacks: Sequence[Callback], bar: bool) -> dict[str, Trainer]:
    """The model that was asked for and those of the fallback, by name; one that breaks down is left out."""
    for watcher in callbacks:
        watcher.on_ready(made.main.weighting)
    trained: dict[str, Trainer] = {}
    for name, candidate in {WEIGHTED: made.main, **made.others}.items():
        watchers = [*(callbacks if candidate is made.main else ()), *([ProgressBar(candidate.title)] if bar else [])]
        trainer = candidate.trainer(made.config["steps"], watchers)
        if candidate.method.uses_unlabeled:
            looks = WeightHistory(candidate.weighting, len(made.scenario.unlabeled), trainer.weight_rows)
            trainer.callbacks.insert(0, looks)  # before the checkpoint, which holds them
        try:
            _train(trainer, folder, "" if candidate is made.main else name)
        except DivergenceError:
            if candidate is made.main:
                raise
            continue  # plain training may well break down on such a pool; it is not chosen then
        trained[name] = trainer
    return trained


def _train(trainer: Trainer, folder: Path | None, name: str) -> None:
    """Train, or go on training; ``name`` is the folder of its state in that of the run."""
    place, stamp = (None, "") if folder is None else (folder / STATE / name, sha256_of(folder / CONFIG))
    with patient_interrupt() as asked:
        checkpointer = Checkpointer(trainer, place, stamp, _advice(folder), asked)
        checkpointer.load()
        trainer.callbacks.append(checkpointer)
        trainer.run()
        checkpointer.save()
        checkpointer.stop_if_asked()


def _advice(folder: Path | None) -> str:
    return (
        "nothing was kept, as there is no run directory." if folder is None else f"go on: wrssl fit --resume {folder}"
    )
