"""When the state of a run is stored, and how the run ends if somebody wants it to, or if the disk is full."""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable
from pathlib import Path

from wrssl.api import DataError, OptionError
from wrssl.training import state
from wrssl.training.callbacks import Callback
from wrssl.training.files import storing
from wrssl.training.generations import Generations, Snapshot
from wrssl.training.interrupt import Interrupted
from wrssl.training.loop import Trainer
from wrssl.training.step import Outcome

SHARE = 0.05  # of the time may go into storing; a state that takes long is stored less often


class Checkpointer(Callback):
    """Stores the state every few seconds, at the end, and when the user wants the run to stop.

    Args:
        trainer: whose state.
        folder: where to; None where there is no run directory.
        stamp: identifies the settings of the run; a state that was written with other settings is refused.
        advice: how to go on after a stop.
        asked: the number of the signal by which somebody wants the run to stop, 0 for none.
    """

    def __init__(
        self,
        trainer: Trainer,
        folder: Path | None,
        stamp: str = "",
        advice: str = "",
        asked: Callable[[], int] = lambda: 0,
    ) -> None:
        self.trainer, self.stamp, self.advice, self.asked = trainer, stamp, advice, asked
        self.generations = None if folder is None else Generations(folder)
        self.group = trainer.net.devices.group
        self._pause = self._shortest = shortest_pause()
        self._stored, self._at = -1, time.monotonic()  # the step that is stored, and when that was

    def load(self) -> None:
        """Put the newest state that is whole into the trainer, where there is one."""
        found = self._newest()
        if self.generations is None or found is None:
            return
        if found.numbers.get("stamp") != self.stamp:
            raise DataError(
                "The settings in config.json are not those with which the stored state was made; put the old file "
                "back, or start a new run in another folder."
            )
        try:
            state.put_back(self.trainer, found)
        except (KeyError, RuntimeError, TypeError, ValueError) as error:
            raise DataError(
                f"The state in {self.generations.folder} is not one of this run; start a new run in another folder."
            ) from error
        self._stored = self.trainer.done

    def _newest(self) -> Snapshot | None:
        """The newest state that is whole; among several processes one reads and tells the others."""
        if self.generations is None:
            return None
        if self.group is None:
            return self.generations.read()
        found: Snapshot | None = self.group.from_leader(self.generations.read() if self.group.leads else None)
        return found

    def save(self) -> None:
        """Store the state of now, unless it is stored already; among several processes one does."""
        trainer = self.trainer
        if self.generations is None or self._stored == trainer.done or not trainer.net.devices.lead:
            return
        start = time.monotonic()
        tensors, numbers = state.state_of(trainer)
        what = f"The state after step {trainer.done} of {trainer.plan.steps}"
        with storing(f"{what} in {self.generations.folder}", self.advice):
            self.generations.write(trainer.done, tensors, {**numbers, "stamp": self.stamp})
        self._stored, self._at = trainer.done, time.monotonic()
        if self._shortest > 0:  # 0 asks for a state after every step, whatever that costs
            self._pause = max(self._shortest, (self._at - start) / SHARE)

    def stop_if_asked(self) -> None:
        """End the run here, stored, if somebody wants that."""
        number = self.asked() if self.group is None else self.group.largest(self.asked())
        if number:
            self.save()
            done, steps = self.trainer.done, self.trainer.plan.steps
            raise Interrupted(f"Stopped after step {done} of {steps}; {self.advice}", number)

    def on_step(self, step: int, outcome: Outcome) -> None:
        """Stop here if asked to; save if the last time is long enough ago."""
        self.stop_if_asked()
        if self.generations is not None and time.monotonic() - self._at >= self._pause:
            self.save()


def shortest_pause() -> float:
    """Seconds between two states; ``WRSSL_SAVE_EVERY`` in the environment, else ``state.SAVE_EVERY``."""
    given = os.environ.get("WRSSL_SAVE_EVERY")
    if given is None:
        return state.SAVE_EVERY
    try:
        seconds = float(given)
    except ValueError:
        seconds = math.nan
    if not seconds >= 0:
        raise OptionError(f"WRSSL_SAVE_EVERY must be a number of seconds, 0 or more, but it is {given!r}.")
    return seconds
