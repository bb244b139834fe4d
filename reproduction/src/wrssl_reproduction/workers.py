"""Many cells on many cores or on a cluster, through joblib: one thread per job, results as they come, and the progress.

A worker of a Dask cluster that dies costs nothing: its cells are given to another one, and a row is stored where
``reproduce`` runs, once per cell, when the cell has ended.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

from wrssl import progress
from wrssl.errors import OptionError, WRSSLError
from wrssl_reproduction.cell import Cell
from wrssl_reproduction.cost import in_words, share_seconds
from wrssl_reproduction.run import Outcome

Run = Callable[[Cell, str | None], Outcome]
GROWTH = 2 << 30  # bytes by which a worker may grow after its first cell
ANSWER = "20s"  # how long to wait for a scheduler


@dataclass(frozen=True)
class Attempt:
    """A cell that was tried: its outcome, or one sentence about what went wrong."""

    cell: Cell
    outcome: Outcome | None
    error: str = ""

    def in_words(self) -> str:
        """The accuracy, or what went wrong."""
        if self.outcome is None:
            return f"failed, {self.error}"
        accuracy = self.outcome.measured.get("test_accuracy")
        return "no accuracy" if accuracy is None else f"{100 * accuracy:.2f} %"


def attempts(
    cells: Iterable[Cell], run: Run, data_dir: str | None, jobs: int, backend: str | None = None
) -> Iterator[Attempt]:
    """Run the cells; they come back in the order in which they end.

    Cells whose time is measured come first, one after the other, while no other cell runs. On a cluster that cannot be
    promised: there they run beside the others.

    Args:
        cells: what to run.
        run: runs one cell; it must be a function that another process can import.
        data_dir: handed to ``run``.
        jobs: processes; −1 for as many as there are cores.
        backend: the name of a registered joblib backend; None takes processes of this machine, and this very process
            for one job.
    """
    if jobs == 0 or jobs < -1:
        raise OptionError(f"jobs counts processes; give a number of at least 1, or -1 for all cores, not {jobs}.")
    work, together = partial(attempt, run, data_dir), list(cells)
    if backend is None:
        yield from map(work, [cell for cell in together if cell.alone or jobs == 1])
        together = [cell for cell in together if not cell.alone and jobs != 1]
    if not together:
        return
    from joblib import Parallel, delayed, parallel_config
    from joblib.externals.loky.process_executor import BrokenProcessPool

    config: dict[str, Any] = {"backend": backend or "loky", "n_jobs": jobs}
    if config["backend"] == "loky":
        config["inner_max_num_threads"] = 1
        work = partial(_grown, work)
    try:
        with parallel_config(**config):
            made = Parallel(return_as="generator_unordered", batch_size=1)
            yield from made(delayed(work)(cell) for cell in together)
    except BrokenProcessPool as error:
        raise WRSSLError(
            "A worker process was ended from outside, often for want of memory; what is done is kept, so run the same "
            "command again, with fewer --jobs."
        ) from error


def _grown(work: Callable[[Cell], Attempt], cell: Cell) -> Attempt:
    """``work`` in a worker that stays: decoded images and compiled code are kept from one cell to the next.

    Where psutil is installed, joblib replaces a worker that has grown by 300 MB since its first cell, taking the
    growth for a leak; the new one imports and decodes everything again.
    """
    from joblib.externals.loky import process_executor

    process_executor._MAX_MEMORY_LEAK_SIZE = GROWTH  # there is no option for it
    return work(cell)


def attempt(run: Run, data_dir: str | None, cell: Cell) -> Attempt:
    """Run one cell; a failure is a result too, and the others go on."""
    try:
        return Attempt(cell, run(cell, data_dir))
    except WRSSLError as error:
        return Attempt(cell, None, str(error))
    except Exception as error:  # one cell must not end the whole grid, whatever its error is
        return Attempt(cell, None, f"{type(error).__name__}: {' '.join(str(error).split()) or 'no message'}")


@contextmanager
def cluster(backend: str | None, address: str | None) -> Iterator[str | None]:
    """Within this the joblib backend of that name works; None is this machine.

    Args:
        backend: ``"dask"`` or None.
        address: of the scheduler, as ``tcp://host:8786``.
    """
    if backend is None:
        if address is not None:
            raise OptionError("An address belongs to a cluster; add --backend dask.")
        yield None
        return
    if backend != "dask":
        raise OptionError(f"There is no backend {backend!r}; use dask, or leave it out for this machine.")
    if address is None:
        raise OptionError("Say where the scheduler of the cluster is, for example --address tcp://localhost:8786.")
    try:
        from distributed import Client
    except ImportError as error:
        raise OptionError('A Dask cluster needs pip install "wrssl[distributed]".') from error
    try:
        client = Client(address, timeout=ANSWER)  # type: ignore[no-untyped-call]
    except (OSError, ValueError) as error:
        raise OptionError(
            f"No Dask scheduler answers at {address}; start one with `dask scheduler`, and workers with `dask worker "
            f"{address} --nthreads 1`."
        ) from error
    with client:
        yield "dask"


class Display:
    """Cells done, time left, last result: a bar on a terminal, one line per cell elsewhere; all on standard error.

    Time left follows from the predicted cost of the remaining cells, at the speed of those that are done.

    Args:
        cells: all that are to be run.
        jobs: how many run at once, as in ``reproduce``.
        terminal: None looks whether standard error is one.
    """

    def __init__(self, cells: Sequence[Cell], jobs: int, terminal: bool | None = None) -> None:
        self.number, self.jobs = len(cells), jobs
        self.total = sum(share_seconds(cell, jobs) for cell in cells)
        self.done, self.cost, self.begin = 0, 0.0, time.monotonic()
        self.watched = progress.is_watched(terminal)
        self._bar = progress.bar("cells", self.total, show=self.watched, unit="share")

    def __enter__(self) -> Display:
        self._tick = self._bar.__enter__()
        return self

    def __exit__(self, *error: Any) -> None:
        self._bar.__exit__(*error)

    def show(self, attempt: Attempt) -> None:
        """One more cell is done."""
        share = share_seconds(attempt.cell, self.jobs)
        self.done, self.cost = self.done + 1, self.cost + share
        left = f"{in_words(self.seconds_left())} left"
        news = f"{self.done}/{self.number}  {left}  {attempt.cell}: {attempt.in_words()}"
        if self.watched:
            self._tick(share, news)
        else:
            print(news, file=sys.stderr, flush=True)

    def seconds_left(self) -> float:
        """At the speed so far."""
        left = max(0.0, self.total - self.cost)  # a sum in another order can be larger by a rounding error
        return (time.monotonic() - self.begin) * left / self.cost if self.cost else left
