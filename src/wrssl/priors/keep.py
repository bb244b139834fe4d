"""A prior as tensors, for a run that is to go on later."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from wrssl.api import State
from wrssl.priors.calibrate import WeightCurve
from wrssl.priors.fit import Prior


def to_state(prior: Prior) -> State:
    """Everything but the names of the kinds."""
    curve = prior.curve
    arrays = {"scores": prior.scores, "known": prior.known, "nodes": curve.nodes, "values": curve.values}
    numbers = torch.tensor([*prior.shares.values(), prior.log_loss], dtype=torch.float64)
    return {"prior numbers": numbers, **{f"prior {name}": torch.from_numpy(array) for name, array in arrays.items()}}


def from_state(state: State, kinds: Sequence[str]) -> Prior:
    """Inverse of ``to_state``."""
    scores, known, nodes, values = (state[f"prior {name}"].numpy() for name in ("scores", "known", "nodes", "values"))
    *shares, log_loss = state["prior numbers"].tolist()
    return Prior(scores, known, WeightCurve(nodes, values), dict(zip(kinds, shares, strict=True)), log_loss)
