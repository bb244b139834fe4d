"""One run on several devices: every process holds the whole batch and the whole weighting, and part of the work.

Most of the time of a step goes into the passes through the backbone, so these are what is spread: each process runs its
own rows, and the features of all rows are put together again (``group.py``)::

    x (all rows) ──► own rows ──► backbone, joint statistics ──► features of own rows ──► features of all rows

Everything else (augmentations, losses, weights, hypergradients on the last layer, the gate) is computed from the
features of all rows by every process, with the same random numbers and so the same result; that code is written for
one process. A gradient of the backbone is the sum over the processes; that of the head is the same in each of them.

Lightning Fabric starts the processes, joins them and carries the messages (``launch.py``). Each process holds the whole
model: nothing is sharded.
"""

from __future__ import annotations

from wrssl.parallel.group import Group, LostProcessError, own_rows, spread_rows
from wrssl.parallel.launch import STRATEGIES, Devices, check_devices, launch, own_device
from wrssl.worker import is_worker

__all__ = [
    "STRATEGIES",
    "Devices",
    "Group",
    "LostProcessError",
    "check_devices",
    "is_worker",
    "launch",
    "own_device",
    "own_rows",
    "spread_rows",
]
