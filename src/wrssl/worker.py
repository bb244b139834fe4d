"""Whether this process is a worker: one of the processes of a run with several devices, but not the first.

The first process of a run, its leader, writes files, holds the lock and talks to the user. It starts the others by
running the same command again, and marks them through an environment variable that is set only meanwhile: programs
that the user starts later are not workers, and neither is a process in which another launcher has set ``LOCAL_RANK``.

Nothing large is imported here, since the command line asks before it imports torch.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

LEADER = "WRSSL_LEADER"  # the process id of the leader, in the environment of the processes that it starts
RANKS = ("LOCAL_RANK", "RANK")
# Removed from the environment, since programs that a worker starts do not take part in its run.
_leader = os.environ.pop(LEADER, None)
_known = None if _leader is None else _leader != str(os.getpid())


def is_worker(devices: int = 1) -> bool:
    """Whether another process of the same run writes files and talks to the user.

    Args:
        devices: of the run. With more than one, the processes may also come from an external launcher (``torchrun``),
            which numbers them in the environment; with one, such numbers belong to something else.
    """
    if _known is not None:
        return _known
    return devices > 1 and "LOCAL_RANK" in os.environ and any(os.environ.get(rank, "0") != "0" for rank in RANKS)


@contextmanager
def leading() -> Iterator[None]:
    """Within this, processes that this one starts are its workers; afterwards the environment is as before."""
    before = os.environ.get(LEADER)
    os.environ[LEADER] = str(os.getpid())
    try:
        yield
    finally:
        if before is None:
            del os.environ[LEADER]
        else:
            os.environ[LEADER] = before


def joined(rank: int) -> None:
    """The processes of a run have been joined, this one as number ``rank``: from now on that is what counts."""
    global _known
    _known = rank != 0
