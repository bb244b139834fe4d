"""One run on several devices: every process holds the whole batch and the whole weighting, and part of the work.

The dear part of a step is the passes through the backbone. So that is what is spread: each process runs its own rows,
and the features are put together again (``spread.py``)::

    x (all rows) ──► own rows ──► backbone, joint statistics ──► features of own rows ──► features of all rows

Everything else (looks, losses, weights, hypergradients on the last layer, the gate) is computed from the features of
all rows by every process, with the same random numbers, and comes out the same; it is written for one process and
stays so. A gradient of the backbone is the sum of what the processes have found; that of the head is known to each.

Lightning Fabric starts the processes, joins them and moves the messages (``launch.py``).
"""

from __future__ import annotations

from wrssl.parallel.group import Group
from wrssl.parallel.launch import Devices, check_devices, launch, own_device
from wrssl.parallel.spread import own_rows, spread

__all__ = ["Devices", "Group", "check_devices", "launch", "own_device", "own_rows", "spread"]
