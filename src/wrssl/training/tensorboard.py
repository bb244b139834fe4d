"""The curves of a run for TensorBoard."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

from wrssl.api import OptionError
from wrssl.training.callbacks import Callback


class TensorBoard(Callback):
    """Writes every number of a row of history under its name, at its step.

    Args:
        folder: the log directory; several runs below one folder are compared by TensorBoard.
    """

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        try:
            from torch.utils.tensorboard import SummaryWriter
        except ImportError as error:
            raise OptionError("TensorBoard is not installed; install it with: pip install tensorboard") from error
        self._open: Callable[[], Any] = lambda: SummaryWriter(os.fspath(folder))
        self._writer: Any = None

    def on_start(self, start: int, steps: int) -> None:
        """Open a file of events."""
        self._writer = self._open()

    def on_evaluate(self, row: dict[str, Any]) -> None:
        """One point per curve."""
        for name, value in row.items():
            if name != "step" and value is not None:
                self._writer.add_scalar(name, value, row["step"])

    def on_end(self) -> None:
        """Close it."""
        if self._writer is not None:
            self._writer.close()
