"""The last stage of the default: return whichever model the select set prefers.

Three models are trained for equally many steps from the same initialisation on the same data in the same order:

    weighted     the method with the weights that were asked for
    plain        the same method, every pool member counting fully
    supervised   the labels alone

The best on the select set is returned: lowest error, equal errors decided by the cross-entropy, the earlier in this
list where that is equal too. The pool is judged by the weighted one in any case. Without a select set, or with a
handful of examples in it, choosing would be a lottery, and the weighted model stays.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from wrssl.training.candidate import Candidate, Workshop
from wrssl.training.loop import Trainer

WEIGHTED, PLAIN, SUPERVISED = "weighted", "plain", "supervised"
FEWEST = 30  # select examples; with fewer the standard error of a difference is above ten points


def companions(shop: Workshop, method: str, method_options: dict[str, Any] | None) -> dict[str, Candidate]:
    """The two models beside the weighted one."""
    return {
        PLAIN: shop.build(method, method_options, "none", None, "batch"),
        SUPERVISED: shop.build(SUPERVISED, None, "none", None, "batch"),
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

    @property
    def trainer(self) -> Trainer:
        """Of the chosen one."""
        return self.trained[self.name]

    def metrics(self) -> dict[str, Any]:
        """What metrics.json says about the choice."""
        looks = {
            name: {"val_accuracy": trainer.best.accuracy, "val_loss": trainer.best.loss}
            for name, trainer in self.trained.items()
        }
        rest = sum(trainer.done for name, trainer in self.trained.items() if name != self.name)
        return {"chosen": self.name, "candidates": looks, "fallback_steps": rest}


def choose(trained: dict[str, Trainer]) -> Choice:
    """By the select set."""
    return Choice(max(trained, key=lambda name: (trained[name].best.accuracy, -trained[name].best.loss)), trained)
