"""Everything that a run needs before its first step: the models, the threads, and what config.json says.

With a weighting that declares ``guarded`` three models are trained for equally many steps, from the same
initialization, on the same data in the same order:

    weighted     the method with the weights that were asked for
    plain        the same method, every pool member with weight 1
    supervised   the labels alone

The best on the select set is returned: lowest error, equal errors decided by the cross-entropy, the earlier in this
list where that is equal too. The pool is judged by the weighted one in any case. Without a select set, or with few
examples in it, the choice would be chance, and the weighted model stays.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch

from wrssl import __version__
from wrssl.api import OptionError
from wrssl.config import FitConfig
from wrssl.data import Scenario, prepare
from wrssl.parallel import Devices
from wrssl.training.batches import TrainingData
from wrssl.training.building import BuildContext, Candidate, find_device
from wrssl.training.effort import choose_threads
from wrssl.training.loop import Trainer

WEIGHTED, PLAIN, SUPERVISED = "weighted", "plain", "supervised"
FEWEST = 30  # select examples; with fewer the standard error of a difference is above ten points


@dataclass(frozen=True)
class Assembly:
    """A run that is ready to start.

    Attributes:
        context: the data and the options.
        models: by name; the requested one, ``weighted``, comes first.
        settings: what config.json says; ``steps`` as they were asked for.
        threads: of torch.
    """

    context: BuildContext
    models: dict[str, Candidate]
    settings: dict[str, Any]
    threads: int

    @property
    def main(self) -> Candidate:
        """The requested model."""
        return self.models[WEIGHTED]

    def use(self, devices: Devices) -> None:
        """Compute the passes of all models there."""
        for candidate in self.models.values():
            candidate.net.use(devices)


def assemble(scenario: Scenario, config: FitConfig) -> Assembly:
    """Build the models; options that do not go together are an ``OptionError``."""
    device = find_device(config.device)
    context = BuildContext(scenario, TrainingData.of(scenario, config.seed, config.budget), config, device)
    main = context.build()
    _check_pair(config, main)
    models = {WEIGHTED: main, **(_fallback(context, main) if config.fallback else {})}
    example = prepare(scenario.labeled[0][:1]).to(device)
    threads = choose_threads(config.threads, main.net.module, example, config.batch_size)
    settings = {
        "wrssl": __version__,
        "torch": torch.__version__,
        **describe(scenario),
        **config.stored(),
        "threads": threads,
        "lr": main.lr,
        "lr_given": config.lr is not None,  # if not, every model of the fallback has that of its own method
        "device": str(device),
    }
    return Assembly(context, models, settings, threads)


def _fallback(context: BuildContext, main: Candidate) -> dict[str, Candidate]:
    """The models that may be returned instead; none without a guarded weighting, a pool, or labels to choose by."""
    select = context.data.roles.select
    enough = select is not None and len(select[1]) >= FEWEST
    if not (main.weighting.guarded and main.method.uses_unlabeled and enough):
        return {}
    plain: dict[str, Any] = {"weights": "none", "weight_options": None, "bn": "batch", "gate": None}
    return {
        PLAIN: context.build(**plain),
        SUPERVISED: context.build(method=SUPERVISED, method_options=None, **plain),
    }


def _check_pair(config: FitConfig, main: Candidate) -> None:
    """Refuse weights of a pool that the method ignores, unless they are the default or follow from nothing."""
    harmless = main.weighting.uniform or main.weighting.wants_truth or config.weights == type(config).weights
    if not main.method.uses_unlabeled and not harmless:
        raise OptionError(
            f"{config.method} ignores the pool, so weights={config.weights!r} has nothing to weigh; choose another "
            "method, or weights='none'."
        )


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
        "embedding": None if scenario.embedding is None else scenario.embedding.to_json(),
    }


@dataclass(frozen=True)
class Choice:
    """Which of the trained models is returned.

    Attributes:
        name: its name.
        trained: all of them, by name.
    """

    name: str
    trained: dict[str, Trainer]

    @classmethod
    def of(cls, trained: dict[str, Trainer]) -> Choice:
        """By the select set."""
        return cls(max(trained, key=lambda name: (trained[name].best.accuracy, -trained[name].best.loss)), trained)

    @property
    def trainer(self) -> Trainer:
        """Of the chosen model."""
        return self.trained[self.name]

    def metrics(self) -> dict[str, Any]:
        """What metrics.json says about the choice."""
        candidates = {
            name: {"val_accuracy": trainer.best.accuracy, "val_loss": trainer.best.loss}
            for name, trainer in self.trained.items()
        }
        rest = sum(trainer.done for name, trainer in self.trained.items() if name != self.name)
        return {"chosen": self.name, "candidates": candidates, "fallback_steps": rest}
