"""``wrssl.fit``: from a scenario and options to a trained model and verdicts."""

from __future__ import annotations

import copy
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import torch

from wrssl import progress
from wrssl.api import DivergenceError
from wrssl.config import FitConfig, takes_options
from wrssl.data import Scenario
from wrssl.parallel import check_devices, launch, own_device
from wrssl.runs import (
    CONFIG,
    STATE,
    Result,
    check_free,
    check_same,
    is_finished,
    load,
    lock_run,
    new_run,
    patient_interrupt,
    read_config,
    sha256_of,
    storing,
)
from wrssl.training.assembly import WEIGHTED, Assembly, Choice, assemble
from wrssl.training.building import find_device
from wrssl.training.callbacks import ProgressBar, WeightHistory
from wrssl.training.checkpoints import Checkpointer
from wrssl.training.effort import choose_steps, use_threads
from wrssl.training.judge import judge
from wrssl.training.loop import Trainer
from wrssl.training.seeing import see


@takes_options(FitConfig)
def fit(scenario: Scenario, config: FitConfig) -> Result:  # noqa: D417  (the options are added)
    """Train a classifier on few labels and a pool that may contain anything.

    Returns the trained model, a verdict on every member of the pool, and what was measured. With ``devices`` above 1
    all processes return the same result; the first one writes and prints.

    Args:
        scenario: the data.
    """
    return fit_with_config(scenario, config)


def fit_with_config(scenario: Scenario, config: FitConfig) -> Result:
    """``fit`` with options that are a ``FitConfig`` already."""
    device = own_device(str(find_device(config.device)), config.devices)
    accelerator = torch.device(device).type
    check_devices(config.devices, config.strategy, config.precision)
    config = config.but(device=device)
    folder = None if config.out is None else Path(config.out)
    with ExitStack() as held:
        stored: dict[str, Any] = {}
        if folder is not None and config.resume and (folder / CONFIG).is_file():
            if not is_finished(folder):  # which is read without a lock: a lock would be a change
                held.enter_context(lock_run(folder, config.devices))
            if is_finished(folder):
                return load(folder, None if isinstance(config.model, str) else copy.deepcopy(config.model))
            stored = read_config(folder)
            chosen = {name: stored[name] for name in ("steps", "threads") if getattr(config, name) in ("auto", None)}
            config = config.but(**chosen)
        elif folder is not None:
            check_free(folder)  # an error now, before the work; claimed when the options are found good
        scenario, config, embedder = see(scenario, config)
        run = assemble(scenario, config)
        started = launch(config.devices, config.strategy, config.precision, accelerator)
        run.use(started)
        if not started.lead:
            config = config.but(progress=False, callbacks=())
        # Several processes share the cores, unless their number of threads was asked for.
        threads = run.threads if config.threads is not None else max(1, run.threads // config.devices)
        with use_threads(threads), progress.silent(config.progress is False):
            run.main.prepare_weighting()
            steps = choose_steps(
                config.steps, scenario, run.main.trainer, len(run.models), config.progress is not False
            )
            group = started.group
            steps = steps if group is None else group.from_leader(steps)  # a number that was measured
            settings = run.settings | {"steps": steps}
            if stored and folder is not None:
                check_same(settings, stored, folder)
            elif folder is not None and started.lead:
                held.enter_context(new_run(folder, settings))
            if group is not None:  # now all processes can read the settings
                group.from_leader(None)
            trained = _train_all(run, config, steps, folder)
            choice = Choice.of(trained) if len(run.models) > 1 else None
            result = judge(scenario, trained[WEIGHTED], settings, choice)
            result.embedder = embedder
        if folder is not None and started.lead:
            with storing(f"The result in {folder}", _advice(folder)):
                result.write_outputs(folder)
        return result


def _train_all(run: Assembly, config: FitConfig, steps: int, folder: Path | None) -> dict[str, Trainer]:
    """The requested model and those of the fallback, by name; one of the latter that breaks down is left out."""
    trained: dict[str, Trainer] = {}
    for name, candidate in run.models.items():
        callbacks = list(config.callbacks) if name == WEIGHTED else []
        if progress.is_watched(config.progress):
            callbacks.append(ProgressBar(candidate.title, config.progress))
        trainer = candidate.trainer(steps, callbacks)
        if candidate.method.uses_unlabeled:
            trainer.callbacks.insert(0, WeightHistory())  # before the checkpoint, which stores its rows
        if WEIGHTED in trained and trained[WEIGHTED].stopped:
            trainer.stop_at(trained[WEIGHTED].done)  # models are compared after equally many steps
        try:
            _train(trainer, folder, "" if name == WEIGHTED else name)
        except DivergenceError:
            if name == WEIGHTED:
                raise
            continue  # plain training may well break down on such a pool; it is not chosen then
        trained[name] = trainer
    return trained


def _train(trainer: Trainer, folder: Path | None, name: str) -> None:
    """Train, or continue training; ``name`` is the folder of the state in that of the run."""
    place, stamp = (None, "") if folder is None else (folder / STATE / name, sha256_of(folder / CONFIG))
    with patient_interrupt() as asked:
        checkpointer = Checkpointer(trainer, place, stamp, _advice(folder), asked)
        checkpointer.load()
        trainer.callbacks.append(checkpointer)
        trainer.run()
        checkpointer.save()
        checkpointer.stop_if_asked()


def _advice(folder: Path | None) -> str:
    if folder is None:
        return "nothing was kept, as there is no run directory."
    return f"go on: wrssl fit --resume {folder}"
