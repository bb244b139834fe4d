"""Many cells on many cores, through joblib: one thread per job, results as they come."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

from wrssl.api import OptionError, WRSSLError
from wrssl.experiments.cell import Cell
from wrssl.experiments.run import Outcome

Run = Callable[[Cell, str | None], Outcome]
GROWTH = 2 << 30  # bytes by which a worker may grow after its first cell


@dataclass(frozen=True)
class Attempt:
    """A cell that was tried: its outcome, or one sentence about what went wrong."""

    cell: Cell
    outcome: Outcome | None
    error: str = ""


def attempts(
    cells: Iterable[Cell], run: Run, data_dir: str | None, jobs: int, backend: str | None = None
) -> Iterator[Attempt]:
    """Run the cells; the order in which they come back is that in which they end.

    Those whose time counts come first, one after the other while nothing else of ours runs. On a cluster nobody can
    promise that: there they run beside the others.

    Args:
        cells: what to run.
        run: runs one cell; it must be a function that another process can import.
        data_dir: handed to ``run``.
        jobs: processes; −1 for as many as there are cores.
        backend: the name of a joblib backend that is registered; None takes processes of this machine, and this very
            process for one job.
    """
    if jobs == 0 or jobs < -1:
        raise OptionError(f"jobs counts processes; give a number of at least 1, or -1 for all cores, not {jobs}.")
    work, together = partial(_attempt, run, data_dir), list(cells)
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

    Where psutil is installed, joblib takes a worker that has grown by 300 MB since its first cell for one that leaks
    and starts another, which imports and decodes everything again.
    """
    from joblib.externals.loky import process_executor

    process_executor._MAX_MEMORY_LEAK_SIZE = GROWTH  # there is no option for it
    return work(cell)


def _attempt(run: Run, data_dir: str | None, cell: Cell) -> Attempt:
    """A failure is a result too: the others go on."""
    try:
        return Attempt(cell, run(cell, data_dir))
    except WRSSLError as error:
        return Attempt(cell, None, str(error))
    except Exception as error:  # whatever it is, one cell must not end the whole grid
        return Attempt(cell, None, f"{type(error).__name__}: {' '.join(str(error).split()) or 'no message'}")
