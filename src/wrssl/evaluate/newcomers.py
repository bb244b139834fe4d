"""Verdicts on examples that were never seen: by the prior of the pool where there is one, else by the energy.

The rule is that of ``evaluate/verdicts.py``, with the same reference.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from wrssl.evaluate.verdicts import energy, verdict_of
from wrssl.priors import PriorScorer, conformal_p, tensor_of_names

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pandas as pd


@dataclass(frozen=True)
class NewcomerJudge:
    """What has to be kept of a run to judge newcomers.

    Attributes:
        usual: minus the energies of the reference examples.
        rate: the false-drop rate.
        prior: of the pool, where the weighting had one.
    """

    usual: NDArray[np.float64]
    rate: float
    prior: PriorScorer | None

    def __call__(self, ids: Sequence[Any] | None, x: Tensor, logits: Tensor, classes: NDArray[Any]) -> pd.DataFrame:
        """One row per example: id, label, confidence, ood_score, verdict."""
        import pandas as pd

        if self.prior is None:
            p = conformal_p(-energy(logits).double().numpy(), self.usual)
            score, weight = 1 - p, np.ones(len(p))
        else:
            p, score, weight = self.prior(x)
        best = logits.softmax(1).max(1)
        columns = {
            "id": np.arange(len(x)) if ids is None else list(ids),
            "label": np.asarray(classes)[best.indices.numpy()],
            "confidence": best.values.numpy(),
            "ood_score": score,
            "verdict": verdict_of(p, weight, self.rate),
        }
        return pd.DataFrame(columns)

    def save(self, path: Path) -> None:
        """Tensors only; nothing that would have to be unpickled."""
        from safetensors.torch import save_file

        tensors = {"usual": torch.from_numpy(self.usual), "rate": torch.tensor(self.rate, dtype=torch.float64)}
        if self.prior is not None:
            tensors |= {f"prior/{name}": value for name, value in self.prior.state_dict().items()}
        save_file(tensors, path)

    @classmethod
    def load(cls, path: Path) -> NewcomerJudge:
        """Inverse of ``save``."""
        from safetensors import safe_open

        with safe_open(path, framework="pt") as file:
            kinds = (file.metadata() or {}).get("kinds", "").split(",")  # where version 0.1.0 stored them
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118  (not a mapping)
        state = {name.removeprefix("prior/"): value for name, value in tensors.items() if name.startswith("prior/")}
        prior = PriorScorer.from_state({"kinds": tensor_of_names(kinds), **state}) if state else None
        return cls(tensors["usual"].numpy(), float(tensors["rate"]), prior)
