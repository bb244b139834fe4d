"""Verdicts on examples that were not in the pool, by the rule of ``evaluate/verdicts.py`` with the same reference.

Where the weighting has a scorer for new samples (``wrssl.judging.NewSampleScorer``), its p-value counts, else that of
the network's energy. What is stored are tensors only, which nothing has to unpickle; the weighting that made the
scorer is stored by its registered name and makes the scorer again from its tensors.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from wrssl.api import State
from wrssl.errors import OptionError
from wrssl.evaluate.verdicts import energy, verdict_of
from wrssl.judging import Belonging, NewSampleScorer, PoolJudge
from wrssl.priors import conformal_p
from wrssl.registry import WEIGHTINGS

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pandas as pd

SCORER = "scorer/"  # before the names of the scorer's tensors
PRIOR, KINDS = "prior/", "kinds"  # version 0.1.0: the weighting was "prior" always, its kinds were in the metadata


@dataclass(frozen=True)
class NewSampleJudge:
    """What has to be kept of a run to judge new samples.

    Attributes:
        usual: minus the energies of the reference examples.
        rate: the false-drop rate.
        scorer: of the weighting, where it has one.
        weighting: the registered name of that weighting; not used without a scorer.
    """

    usual: NDArray[np.float64]
    rate: float
    scorer: NewSampleScorer | None = None
    weighting: str = ""

    def __call__(self, ids: Sequence[Any] | None, x: Tensor, logits: Tensor, classes: NDArray[Any]) -> pd.DataFrame:
        """One row per example: id, label, confidence, ood_score, verdict.

        Args:
            ids: a name per example; None for the row numbers.
            x: the examples as the pool's values were stored, (N, …).
            logits: of the examples, (N, C).
            classes: the names of the classes.
        """
        import pandas as pd

        p, score, weight = self._belonging(logits) if self.scorer is None else self.scorer(x)
        best = logits.softmax(1).max(1)
        columns = {
            "id": np.arange(len(x)) if ids is None else list(ids),
            "label": np.asarray(classes)[best.indices.numpy()],
            "confidence": best.values.numpy(),
            "ood_score": score,
            "verdict": verdict_of(p, weight, self.rate),
        }
        return pd.DataFrame(columns)

    def _belonging(self, logits: Tensor) -> Belonging:
        p = conformal_p(-energy(logits).double().numpy(), self.usual)
        return Belonging(p, 1 - p, np.ones(len(p)))

    def save(self, path: Path) -> None:
        """Write a safetensors file."""
        from safetensors.torch import save_file

        tensors = {"usual": torch.from_numpy(self.usual), "rate": torch.tensor(self.rate, dtype=torch.float64)}
        metadata: dict[str, str] = {}
        if self.scorer is not None:
            metadata["weighting"] = self.weighting
            tensors |= {
                f"{SCORER}{name}": value.clone(memory_format=torch.contiguous_format)
                for name, value in self.scorer.state_dict().items()
            }
        save_file(tensors, path, metadata=metadata)

    @classmethod
    def load(cls, path: Path) -> NewSampleJudge:
        """Inverse of ``save``; reads files of version 0.1.0 too."""
        from safetensors import safe_open

        with safe_open(path, framework="pt") as file:
            metadata = file.metadata() or {}
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118  (not a mapping)
        scorer, weighting = None, ""
        if "weighting" in metadata:
            weighting = metadata["weighting"]
            scorer = _scorer(weighting, _below(SCORER, tensors))
        elif state := _below(PRIOR, tensors):
            weighting = "prior"
            state["kinds"] = torch.tensor(list(metadata[KINDS].encode("utf-8")), dtype=torch.uint8)
            scorer = _scorer(weighting, state)
        return cls(tensors["usual"].numpy(), float(tensors["rate"]), scorer, weighting)


def _below(prefix: str, tensors: State) -> State:
    return {name.removeprefix(prefix): value for name, value in tensors.items() if name.startswith(prefix)}


def _scorer(weighting: str, state: State) -> NewSampleScorer:
    kind: type = WEIGHTINGS.get(weighting) if weighting in WEIGHTINGS.names() else object
    return kind.load_new_sample_scorer(state) if issubclass(kind, PoolJudge) else UnreadScorer(weighting, state)


@dataclass(frozen=True)
class UnreadScorer:
    """The stored scorer of a weighting that is not registered; without it the run still predicts classes."""

    weighting: str
    state: State

    def __call__(self, x: Tensor) -> Belonging:
        """By the weighting, where it has been registered since."""
        scorer = _scorer(self.weighting, self.state)
        if isinstance(scorer, UnreadScorer):
            raise OptionError(
                f"New samples of this run are judged by the weighting {self.weighting!r}, which is not registered; "
                "give the file that registers it with --plugin, or import it first."
            )
        return scorer(x)

    def state_dict(self) -> State:
        """What was stored."""
        return self.state
