"""Callbacks: what watches a run, and may end it. All hooks are optional."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import ExitStack
from functools import partial
from typing import TYPE_CHECKING, Any

import torch

from wrssl import progress
from wrssl.api import OptionError

if TYPE_CHECKING:
    from wrssl.training.loop import Trainer
    from wrssl.training.step import Outcome


class Callback:
    """Override what you need; ``wrssl.fit(..., callbacks=[...])`` calls it with the trainer of the requested model.

    The trainer's public attributes may be read in every hook: ``plan``, ``done`` (steps so far), ``net``, ``method``,
    ``weighting`` (``weighting.batch(index).weight`` only reads), ``optimizer``, ``history``, ``best``. To end the run
    after the current step and keep its result, call ``trainer.stop()``.
    """

    def on_start(self, trainer: Trainer) -> None:
        """Before the first step; ``trainer.done`` is above 0 in a resumed run."""

    def on_step(self, trainer: Trainer, outcome: Outcome) -> None:
        """After each step, and after its evaluation if there is one. Reading a tensor waits for the device."""

    def on_evaluate(self, trainer: Trainer, row: dict[str, Any]) -> None:
        """After each evaluation, with the new row of the history."""

    def on_end(self, trainer: Trainer) -> None:
        """After the last step, also when the run ends with an error."""


class ProgressBar(Callback):
    """A bar with the current loss, mean weight and validation accuracy.

    Args:
        title: shown beside the bar.
        show: as in ``wrssl.progress``.
    """

    def __init__(self, title: str, show: bool | None = None) -> None:
        self.title, self.show = title, show
        self._open = ExitStack()
        self._accuracy = ""

    def on_start(self, trainer: Trainer) -> None:
        """Open the bar."""
        done, total = trainer.done, trainer.plan.steps
        self._tick = self._open.enter_context(progress.bar(self.title, total, done=done, show=self.show))

    def on_step(self, trainer: Trainer, outcome: Outcome) -> None:
        """Move it; the loss is read only when it is shown."""
        self._tick(
            1, lambda: f"loss {float(outcome.loss):.3f}  mean weight {float(outcome.mean_weight):.2f}{self._accuracy}"
        )

    def on_evaluate(self, trainer: Trainer, row: dict[str, Any]) -> None:
        """Remember the accuracy."""
        if row["val_accuracy"] is not None:
            self._accuracy = f"  validation {100 * row['val_accuracy']:.1f} %"

    def on_end(self, trainer: Trainer) -> None:
        """Close it."""
        self._open.close()


class WeightHistory(Callback):
    """The distribution of the weights over the pool, before the first step and at each evaluation, for the report.

    Weights are counted in ``BINS`` equal bins over [0, 1]; the last one holds 1 as well. Rows go to
    ``trainer.weight_rows``: ``step`` (0 before the first), ``mean``, ``members`` (how many were counted), ``counts``.
    """

    BINS = 20
    MEMBERS = 100_000  # of the pool that are counted; the shares of more would differ in the third digit
    CHUNK = 10_000
    NEAR = 1e-5  # Weights are float32: 0.95 is a little less than that, and belongs to the bin that begins there.

    def on_start(self, trainer: Trainer) -> None:
        """Count the initial weights; a resumed run drops the rows of later steps."""
        trainer.weight_rows[:] = [row for row in trainer.weight_rows if row["step"] <= trainer.done]
        if trainer.done == 0 and not trainer.weight_rows:
            self._count(trainer, 0)

    def on_evaluate(self, trainer: Trainer, row: dict[str, Any]) -> None:
        """Count the current weights; those before the first step are counted already."""
        if row["step"] > 0:
            self._count(trainer, int(row["step"]))

    def _count(self, trainer: Trainer, step: int) -> None:
        size = len(trainer.data.unlabeled)
        members = min(size, self.MEMBERS)
        counts, total = torch.zeros(self.BINS, dtype=torch.long), 0.0
        for start in range(0, members, self.CHUNK):
            # Evenly spread over the pool, the same members each time: place k is member ⌊k M / members⌋.
            index = torch.arange(start, min(start + self.CHUNK, members)) * size // members
            w = trainer.weighting.batch(index).weight.detach().cpu().double()
            counts += torch.bincount((w * self.BINS + self.NEAR).long().clamp(0, self.BINS - 1), minlength=self.BINS)
            total += float(w.sum())
        row = {"step": step, "mean": total / members, "members": members, "counts": counts.tolist()}
        trainer.weight_rows.append(row)


class TensorBoard(Callback):
    """Writes every number of a row of history for TensorBoard, under its name, at its step.

    Args:
        folder: the log directory; TensorBoard compares several runs below one folder.
    """

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        try:
            from torch.utils.tensorboard import SummaryWriter
        except ImportError as error:
            raise OptionError("TensorBoard is not installed; install it with: pip install tensorboard") from error
        self._open: Callable[[], Any] = partial(SummaryWriter, os.fspath(folder))
        self._writer: Any = None

    def on_start(self, trainer: Trainer) -> None:
        """Open a file of events."""
        self._writer = self._open()

    def on_evaluate(self, trainer: Trainer, row: dict[str, Any]) -> None:
        """One point per curve."""
        for name, value in row.items():
            if name != "step" and value is not None:
                self._writer.add_scalar(name, value, row["step"])

    def on_end(self, trainer: Trainer) -> None:
        """Close it."""
        if self._writer is not None:
            self._writer.close()
