"""What a weighting keeps in memory for each member of the pool, and that a step costs nothing per member."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from wrssl.api import Pool
from wrssl.judging import PoolJudge
from wrssl.priors import POOL_ROWS
from wrssl.registry import WEIGHTINGS

SIZE = 200_000
BATCH = 100


class Stripes:
    """Rows without a table behind them: row j is (j mod 40, j mod 7)."""

    def __len__(self):
        return SIZE

    def __getitem__(self, rows):
        number = torch.arange(SIZE)[rows]
        return torch.stack([number % 40, number % 7], dim=1).float()


def storages(thing, seen=None):
    """All storages of tensors and arrays that can be reached from an object, by address."""
    seen = {} if seen is None else seen
    if id(thing) in seen:
        return {}
    seen[id(thing)] = thing
    if isinstance(thing, Tensor):
        storage = thing.untyped_storage()
        return {storage.data_ptr(): storage.nbytes()}
    if isinstance(thing, np.ndarray):
        whole = thing if thing.base is None else thing.base
        return {thing.ctypes.data: whole.nbytes}
    inner = thing.values() if isinstance(thing, dict) else thing if isinstance(thing, (list, tuple)) else ()
    found = {}
    for part in [*inner, *getattr(thing, "__dict__", {}).values()]:
        found |= storages(part, seen)
    return found


class Largest(TorchDispatchMode):
    """The largest tensor that comes out of an operation without being part of ``known``."""

    def __init__(self, known):
        super().__init__()
        self.known, self.numel = known, 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        result = func(*args, **(kwargs or {}))
        for tensor in tree_leaves(result):
            if isinstance(tensor, Tensor) and tensor.untyped_storage().data_ptr() not in self.known:
                self.numel = max(self.numel, tensor.numel())
        return result


def started(name, **options):
    weighting = WEIGHTINGS.create(name, options)
    known = torch.arange(30)
    reference = torch.stack([known, known % 7], dim=1).float()
    weighting.setup(Pool(SIZE, 10, lambda kind: Stripes(), 0, None, 0, lambda kind: reference, known % 2))
    return weighting


@pytest.mark.parametrize(
    ("name", "options", "per_member"),
    [
        ("none", {}, 0),
        ("wr-instance", {}, 4),
        ("wr-cluster", {}, 1),
        ("wr-cluster", {"K": 256}, 1),
        ("wr-cluster", {"K": 280}, 2),
        ("prior", {"kinds": "linear"}, 4),  # the score
        ("wr", {"kinds": "linear"}, 4 + 1 + 4),  # the score, the cluster, the visit rate
        ("wr", {"kinds": "linear", "refine": False, "admit": False}, 4),
    ],
    ids=str,
)
def test_bytes_per_member(name, options, per_member):
    weighting = started(name, **options)
    sample = POOL_ROWS * 2 * 4 if name in ("prior", "wr") else 0  # two columns; of any pool equally many rows
    assert 0 <= sum(storages(weighting).values()) - per_member * SIZE - sample <= 20_000


@pytest.mark.parametrize("options", [{}, {"embedding": "features", "warmup": 10}], ids=["now", "later"])
@pytest.mark.parametrize("name", ["none", "wr-instance", "wr-cluster", "wr"])
def test_a_step_costs_in_proportion_to_the_batch(name, options, make_signal):
    weighting = started(name, **{"wr-cluster": options, "wr": {"kinds": "linear"}}.get(name, {}))
    index = torch.randperm(SIZE, generator=torch.Generator().manual_seed(1))[:BATCH]
    signal = make_signal(torch.linspace(-1, 1, BATCH))
    with Largest(storages(weighting)) as largest:
        for step in range(6):
            weighting.begin(step)
            weighting.request(step)
            weighting.batch(index)
            kept = weighting.visits
            weighting.update(index, signal)
            weighting.state_dict()
            if isinstance(weighting, PoolJudge):
                weighting.clusters()
    assert 0 < largest.numel <= max(BATCH, 20)
    assert (kept is not None) == (name == "wr")


def test_the_counter_of_bytes_counts():
    class Holder:
        def __init__(self):
            self.one, self.more = torch.zeros(100)[:1], {"a": [torch.zeros(10, dtype=torch.uint8)]}
            self.array = np.zeros(1000, dtype=np.uint8)[:1]

    assert sum(storages(Holder()).values()) == 1410
    with Largest({}) as largest:
        torch.zeros(7) + 1
    assert largest.numel == 7
