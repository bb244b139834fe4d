"""Starting the processes of a run, through Lightning Fabric."""

from __future__ import annotations

import logging
from functools import cache
from typing import Any

from wrssl.api import OptionError
from wrssl.parallel.group import Group

STRATEGIES = ("auto", "ddp", "fsdp")
PRECISIONS = ("32-true", "bf16-mixed", "16-mixed")


def check_strategy(devices: int, strategy: str, precision: str, accelerator: str) -> None:
    """Refuse what cannot work, before anything is started."""
    if devices < 1:
        raise OptionError(f"devices counts processes and must be at least 1, not {devices}.")
    if strategy not in STRATEGIES:
        raise OptionError(f"There is no strategy {strategy!r}; choose one of {', '.join(STRATEGIES)}.")
    if precision not in PRECISIONS:
        raise OptionError(f"There is no precision {precision!r}; choose one of {', '.join(PRECISIONS)}.")
    if strategy == "fsdp" and accelerator == "cpu":
        raise OptionError("Parameters can be sharded (fsdp) on GPUs only; on a CPU take --strategy ddp.")
    if precision == "16-mixed" and accelerator == "cpu":
        raise OptionError("A CPU has no half precision worth using; take --precision bf16-mixed, or none.")


@cache
def fabric(devices: int, strategy: str, precision: str, accelerator: str) -> Any:
    """The engine, started: from here on this program runs in ``devices`` processes. One per program and setting.

    Fabric starts the others by running the same command again, so what comes before must not depend on being alone.
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
        strategy="ddp" if strategy == "auto" and devices > 1 else strategy,
        precision=precision,  # type: ignore[arg-type]
    )
    engine.launch()
    return engine


def launch(
    devices: int = 1, strategy: str = "auto", precision: str = "32-true", accelerator: str = "cpu"
) -> Group | None:
    """The processes of a run; None where there is one."""
    check_strategy(devices, strategy, precision, accelerator)
    return None if devices == 1 else Group(fabric(devices, strategy, precision, accelerator))
