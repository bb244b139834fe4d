"""Cells on a Dask cluster, through joblib's backend of that name.

A worker that dies is no loss: Dask gives its cells to another one, and a row is stored where ``reproduce`` runs, once
per cell, when the cell has ended.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from wrssl.api import OptionError

PATIENCE = "20s"  # for a scheduler that does not answer


@contextmanager
def cluster(backend: str | None, address: str | None) -> Iterator[str | None]:
    """Within this the named joblib backend works; None is this machine.

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
        client = Client(address, timeout=PATIENCE)  # type: ignore[no-untyped-call]
    except (OSError, ValueError) as error:
        raise OptionError(
            f"No Dask scheduler answers at {address}; start one with `dask scheduler`, and workers with `dask worker "
            f"{address} --nthreads 1`."
        ) from error
    with client:
        yield "dask"
