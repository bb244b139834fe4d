"""``wrssl.fit``: from a scenario to a trained model and verdicts."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from torch import nn

from wrssl import __version__
from wrssl.api import DivergenceError, Method, OptionError
from wrssl.data import Scenario, prepare
from wrssl.data.streams import check_seed
from wrssl.fast.loops import loops
from wrssl.norm import policy_table
from wrssl.norm.native import native_kernels
from wrssl.training.callbacks import Callback
from wrssl.training.candidate import Candidate, Workshop
from wrssl.training.data import TrainingData
from wrssl.training.fallback import WEIGHTED, choose, companions
from wrssl.training.files import write_json
from wrssl.training.judge import judge
from wrssl.training.loop import Trainer
from wrssl.training.network import find_device
from wrssl.training.progress import ProgressBar, someone_watches
from wrssl.training.result import ARRAY, CONFIG, OWN_MODULE, STATE, Result, claim
from wrssl.training.state import NUMBERS, Checkpointer, load_state, save_state
from wrssl.training.steps import choose_steps
from wrssl.training.threads import choose_threads
from wrssl.training.threads import threads as use_threads

DEFAULT_WEIGHTS = "wr"


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
            without a validation set, ignore it.
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
        threads: of torch, while this runs; None takes one for small networks and all that torch may use for others.
        fast: use the kernels of ``wrssl.fast`` and the native weighted batch norm where they apply. False computes the
            same, up to rounding, layer by layer.
    """
    _check(bn, seed, batch_size)
    place = find_device(device)
    shop = Workshop(scenario, TrainingData.of(scenario, seed, budget), model, head, seed, batch_size, lr, place, fast)
    main = shop.build(method, method_options, weights, weight_options, bn, gate)
    _check_pair(method, main.method, weights)
    others = _others(shop, main, method, method_options, weights) if fallback else {}
    number_of_threads = choose_threads(threads, main.net.module, prepare(scenario.labeled[0][:1]).to(place), batch_size)

    config = {
        "wrssl": __version__,
        "torch": torch.__version__,
        "threads": number_of_threads,
        **describe(scenario),
        "model": model if isinstance(model, str) else OWN_MODULE,
        "method": method,
        "method_options": method_options or {},
        "weights": weights,
        "weight_options": {k: v if _is_plain(v) else ARRAY for k, v in (weight_options or {}).items()},
        "bn": bn,
        "gate": gate,
        "fallback": fallback,
        "seed": seed,
        "batch_size": batch_size,
        "lr": main.lr,
        "lr_given": lr is not None,  # if not, every model of the fallback has that of its own method
        "budget": budget,
        "head": head,
        "device": str(place),
        "fast": fast,
        "loops": loops().__name__.rpartition(".")[2] if fast else None,
    }
    shown = progress if progress is not None else someone_watches()
    with use_threads(number_of_threads), native_kernels(fast):
        main.look_at_the_pool()
        config["steps"] = choose_steps(steps, scenario, main.trainer, 1 + len(others))
        folder = None if out is None else Path(out) if resume else claim(out)
        if folder is not None and not (folder / CONFIG).is_file():
            write_json(folder / CONFIG, config)
        trained: dict[str, Trainer] = {}
        for name, candidate in {WEIGHTED: main, **others}.items():
            watchers = [*(callbacks if candidate is main else ()), *([ProgressBar(candidate.title)] if shown else [])]
            trainer = candidate.trainer(config["steps"], watchers)
            state = None if folder is None else folder / STATE if candidate is main else folder / STATE / name
            try:
                _train(trainer, state)
            except DivergenceError:
                if candidate is main:
                    raise
                continue  # plain training may well break down on such a pool; it is not chosen then
            trained[name] = trainer
        result = judge(scenario, trained[WEIGHTED], config, choose(trained) if others else None)
    if folder is not None:
        result.write_outputs(folder)
    return result


def _train(trainer: Trainer, folder: Path | None) -> None:
    """Train, or go on training; ``folder`` keeps the state."""
    if folder is None:
        trainer.run()
        return
    if (folder / NUMBERS).is_file():
        load_state(trainer, folder)
    trainer.callbacks.append(Checkpointer(trainer, folder))
    trainer.run()
    save_state(trainer, folder)


def _others(
    shop: Workshop, main: Candidate, method: str, method_options: dict[str, Any] | None, weights: str
) -> dict[str, Candidate]:
    """The models that the fallback may return instead; none without a pool, or without labels to choose by."""
    wanted = weights == DEFAULT_WEIGHTS and main.method.uses_unlabeled and shop.data.roles.select is not None
    return companions(shop, method, method_options) if wanted else {}


def _check_pair(name: str, method: Method, weights: str) -> None:
    """Refuse weights of a pool that the method ignores; those that one gets without asking pass."""
    if not method.uses_unlabeled and weights not in ("none", "oracle", DEFAULT_WEIGHTS):
        raise OptionError(
            f"{name} ignores the pool, so weights={weights!r} has nothing to weigh; choose another method, or "
            "weights='none'."
        )


def _check(bn: str, seed: int, batch_size: int) -> None:
    policy_table(bn)
    check_seed(seed)
    if batch_size < 2:
        raise OptionError(f"batch_size must be at least 2, since batch norm needs statistics; it is {batch_size}.")


def _is_plain(value: Any) -> bool:
    return value is None or isinstance(value, (bool, int, float, str))


def describe(scenario: Scenario) -> dict[str, Any]:
    """What config.json says about the data: how to load it again, or at least what it looked like."""
    return {
        "scenario": scenario.recipe or {"name": scenario.name},
        "input_shape": list(scenario.input_shape),
        "num_classes": scenario.num_classes,
        "classes": scenario.classes.tolist(),
        "labels": len(scenario.labeled[1]),
        "pool": len(scenario.unlabeled),
        "validation": 0 if scenario.validation is None else len(scenario.validation[1]),
    }
