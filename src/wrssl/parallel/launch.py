"""Starting the processes of a run, through Lightning Fabric."""

from __future__ import annotations

import atexit
import logging
import os
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import cache
from typing import Any

from wrssl.errors import OptionError
from wrssl.parallel.group import Group
from wrssl.worker import joined, leading

STRATEGIES = ("auto", "ddp")
FULL, MIXED = "32-true", "bf16-mixed"


@dataclass(frozen=True)
class Devices:
    """Where the passes of a run are computed, and in which precision.

    Attributes:
        group: the processes that share them; None where there is one.
        autocast: a context for the passes through the backbone.
    """

    group: Group | None = None
    autocast: Callable[[], AbstractContextManager[Any]] = nullcontext

    @property
    def lead(self) -> bool:
        """Whether this process writes files and talks to the user."""
        return self.group is None or self.group.leads


def check_devices(devices: int, strategy: str, precision: str) -> None:
    """Refuse what cannot work, before anything is started."""
    if isinstance(devices, bool) or not isinstance(devices, int) or devices < 1:
        raise OptionError(f"devices counts processes and must be a whole number from 1 on, not {devices!r}.")
    if strategy == "fsdp":
        raise OptionError(
            'The strategy "fsdp" is not supported, as every process holds the whole model and nothing is sharded; '
            'use "ddp", which spreads the rows of each pass over the processes.'
        )
    if strategy not in STRATEGIES:
        raise OptionError(f"There is no strategy {strategy!r}; choose one of {', '.join(STRATEGIES)}.")
    if precision not in (FULL, MIXED):
        raise OptionError(f"There is no precision {precision!r}; choose {FULL} or {MIXED}.")


def launch(devices: int, strategy: str, precision: str, accelerator: str) -> Devices:
    """Start the processes that are asked for; a run with one process in full precision needs nothing.

    Args:
        devices: number of processes.
        strategy: one of ``STRATEGIES``; both mean the same.
        precision: ``"32-true"`` or ``"bf16-mixed"``.
        accelerator: the type of the device: ``"cpu"``, else a GPU.
    """
    check_devices(devices, strategy, precision)
    if devices == 1 and precision == FULL:
        return Devices()
    engine = _fabric(devices, precision, accelerator)
    return Devices(Group(engine) if devices > 1 else None, engine.autocast if precision != FULL else nullcontext)


@cache
def _fabric(devices: int, precision: str, accelerator: str) -> Any:
    """The started engine: from here on this program runs in ``devices`` processes. One per program and setting.

    Fabric starts the others by running the same command again, so what comes before is run by each of them too.
    """
    try:
        from lightning_fabric import Fabric
    except ImportError as error:
        raise OptionError(
            'Several devices need Lightning Fabric; install it with pip install "wrssl[distributed]".'
        ) from error
    logging.getLogger("lightning_fabric").setLevel(logging.WARNING)
    engine = Fabric(
        accelerator="cpu" if accelerator == "cpu" else "gpu",
        devices=devices,
        strategy="ddp" if devices > 1 else "auto",
        precision=precision,  # type: ignore[arg-type]
    )
    with leading():
        engine.launch()
    if devices > 1:
        joined(engine.global_rank)
    atexit.register(_end_group)
    return engine


def _end_group() -> None:
    """End the process group before Python ends: its threads could abort the process after all results are written.

    This waits for no other process: one that failed must not keep the others.
    """
    from torch import distributed

    if distributed.is_available() and distributed.is_initialized():
        distributed.destroy_process_group()


def own_device(name: str, devices: int) -> str:
    """Which of several GPUs this process has; a name with a number, or one process, stays as it is."""
    return f"{name}:{os.environ.get('LOCAL_RANK', '0')}" if name == "cuda" and devices > 1 else name
