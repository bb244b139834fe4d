"""Everything that a run needs before its first step: the models, the threads, and what config.json says."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

from wrssl import __version__
from wrssl.api import Method, OptionError
from wrssl.data import Scenario, check_seed, prepare
from wrssl.evaluate.verdicts import check_rate
from wrssl.fast.loops import loops
from wrssl.norm import policy_table
from wrssl.parallel import Devices
from wrssl.training.candidate import Candidate, Workshop
from wrssl.training.data import TrainingData
from wrssl.training.fallback import FEWEST, companions
from wrssl.training.network import find_device
from wrssl.training.rundir import ARRAY, OWN_MODULE
from wrssl.training.threads import choose_threads

DEFAULT_WEIGHTS = "wr"


@dataclass(frozen=True)
class Assembly:
    """A run that could start now.

    Attributes:
        scenario: the data.
        main: the model that was asked for.
        others: the models that the fallback may return instead, by name.
        config: the settings; ``steps`` as they were asked for.
        threads: of torch.
    """

    scenario: Scenario
    main: Candidate
    others: dict[str, Candidate]
    config: dict[str, Any]
    threads: int

    def use(self, devices: Devices) -> None:
        """Compute the passes of all models there."""
        for candidate in (self.main, *self.others.values()):
            candidate.net.use(devices)


def assemble(
    scenario: Scenario,
    *,
    model: str | nn.Module,
    method: str,
    weights: str,
    bn: str,
    steps: int | str,
    seed: int,
    gate: str | None,
    fallback: bool,
    device: str | torch.device | None,
    method_options: dict[str, Any] | None,
    weight_options: dict[str, Any] | None,
    batch_size: int,
    lr: float | None,
    budget: str,
    head: str | None,
    threads: int | None,
    fast: bool,
    false_drop_rate: float,
) -> Assembly:
    """Check the options and build the models; they are those of ``fit``."""
    _check(bn, seed, batch_size)
    check_rate(false_drop_rate)
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
        "false_drop_rate": false_drop_rate,
        "steps": steps,
    }
    return Assembly(scenario, main, others, config, number_of_threads)


def _others(
    shop: Workshop, main: Candidate, method: str, method_options: dict[str, Any] | None, weights: str
) -> dict[str, Candidate]:
    """The models that the fallback may return instead; none without a pool, or without enough labels to choose by."""
    select = shop.data.roles.select
    enough = select is not None and len(select[1]) >= FEWEST
    wanted = weights == DEFAULT_WEIGHTS and main.method.uses_unlabeled and enough
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
    folders = {} if scenario.folders is None else {"folders": scenario.folders}
    return {
        "scenario": scenario.recipe or {"name": scenario.name, **folders},
        "input_shape": list(scenario.input_shape),
        "num_classes": scenario.num_classes,
        "classes": scenario.classes.tolist(),
        "labels": len(scenario.labeled[1]),
        "pool": len(scenario.unlabeled),
        "validation": 0 if scenario.validation is None else len(scenario.validation[1]),
        "encoder": None if scenario.encoder is None else scenario.encoder.to_json(),
        "reader": None if scenario.reader is None else scenario.reader.to_json(),
    }
