"""Where the files of public data sets are, and what to do when one is missing."""

from __future__ import annotations

import os
from pathlib import Path

from wrssl.api import DataError
from wrssl.data.addresses import Address
from wrssl.data.download import fetch_first


def data_folder(data_dir: str | os.PathLike[str] | None = None) -> Path:
    """The data folder: ``data_dir``, else ``$WRSSL_DATA``, else ``wrssl`` in the user's cache folder."""
    if data_dir is not None:
        return Path(data_dir).expanduser()
    if os.environ.get("WRSSL_DATA"):
        return Path(os.environ["WRSSL_DATA"]).expanduser()
    return Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser() / "wrssl"


def locate(candidates: list[Path], address: Address, target: Path, download: bool) -> Path:
    """The first candidate that exists; else the downloaded file; else a ``DataError`` that says where to get it.

    A file that is there is taken as it is, without a checksum: copies that somebody packed again are fine, as the
    readers check what they read.

    Args:
        candidates: places to look at, best first.
        address: where the official file is.
        target: where a download goes.
        download: fetch it if no candidate exists.

    Returns:
        The path of the file.
    """
    for path in candidates:
        if path.exists():
            return path
    if not download:
        raise DataError(
            f"{target.name} is not in {target.parent}; put it there from {address.urls[0]}, name another data_dir, "
            "or pass download=True."
        )
    return fetch_first(address, target)
