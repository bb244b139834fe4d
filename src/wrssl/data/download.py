"""Fetch a file: resumable, checksummed, and never half there under its final name."""

from __future__ import annotations

import hashlib
import http.client
import os
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO

from wrssl.api import DataError
from wrssl.data.addresses import Address
from wrssl.data.progress import progress_bar

_PIECE = 1 << 18
_TIMEOUT = 30.0


def fetch(
    url: str,
    path: Path,
    *,
    sha256: str | None = None,
    md5: str | None = None,
    size: int | None = None,
    progress: bool | None = None,
) -> Path:
    """Download ``url`` to ``path``.

    The bytes go to ``path.part``, which a later call continues (HTTP Range; a server without it sends all again).
    The file gets its name only once its checksum is right. A continued file with a wrong checksum is fetched again
    from the start, once; a wrong one from the start is removed.

    Args:
        url: http or https.
        path: the file to write; its folder is made. A file with the right checksum is left alone.
        sha256: the checksum; this or ``md5`` is needed.
        md5: the checksum, where only that is published.
        size: the length in bytes, where known; more is never accepted.
        progress: show a bar; default only where stderr is a terminal.

    Returns:
        ``path``.
    """
    if not url.startswith(("http://", "https://")):
        raise DataError(f"{url} is no http or https address; pass one.")
    if sha256 is None and md5 is None:
        raise DataError(f"There is no checksum for {url}; pass sha256 or md5.")
    if path.is_file() and _right(path, sha256, md5):
        return path
    part = path.with_name(path.name + ".part")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        continued = part.exists() and part.stat().st_size > 0
        _transfer(url, part, size, progress)
        if not _right(part, sha256, md5) and continued:
            part.unlink()
            _transfer(url, part, size, progress)
        if not _right(part, sha256, md5):
            part.unlink()
            raise DataError(f"{url} has a wrong checksum; try again later, or put a good copy at {path}.")
        os.replace(part, path)
    except urllib.error.HTTPError as error:
        error.close()
        raise DataError(f"{url} answers {error.code} {error.reason}; put a copy at {path} by hand.") from error
    except (urllib.error.URLError, http.client.HTTPException, TimeoutError, ConnectionError) as error:
        reason = getattr(error, "reason", error)
        raise DataError(
            f"{url} could not be fetched ({reason}); try again, and it goes on where it stopped."
        ) from error
    except OSError as error:
        raise DataError(f"{path} cannot be written ({error.strerror}); name another data_dir.") from error
    return path


def fetch_first(address: Address, path: Path) -> Path:
    """Download from the first address that works; the error of the last one where none does."""
    last: DataError | None = None
    for url in address.urls:
        try:
            return fetch(url, path, md5=address.md5)
        except DataError as error:
            last = error
    assert last is not None  # an Address has at least one url
    raise last


def _right(path: Path, sha256: str | None, md5: str | None) -> bool:
    digests = [(hashlib.sha256(), sha256), (hashlib.md5(usedforsecurity=False), md5)]
    wanted = [(digest, value) for digest, value in digests if value is not None]
    with path.open("rb") as file:
        while piece := file.read(_PIECE):
            for digest, _ in wanted:
                digest.update(piece)
    return all(digest.hexdigest() == value for digest, value in wanted if value is not None)


def _transfer(url: str, part: Path, size: int | None, progress: bool | None) -> None:
    """One HTTP request that completes ``part``; what has arrived stays there if it breaks off."""
    have = part.stat().st_size if part.exists() else 0
    headers = {"User-Agent": "wrssl", "Accept-Encoding": "identity"}
    if have:
        headers["Range"] = f"bytes={have}-"
    try:
        request = urllib.request.Request(url, headers=headers)
        response = urllib.request.urlopen(request, timeout=_TIMEOUT)  # http or https, by ``fetch``  # nosec B310
    except urllib.error.HTTPError as error:
        if have and error.code == 416:  # nothing after ``have``: complete already, or a stale part
            error.close()
            return
        raise
    with response:
        begins = str(response.headers.get("Content-Range", ""))
        goes_on = response.status == 206 and begins.startswith(f"bytes {have}-")
        if response.status == 206 and not goes_on:
            raise DataError(f"{url} sent another range than asked for; remove {part} and try again.")
        done = have if goes_on else 0
        length = response.headers.get("Content-Length")
        total = done + int(length) if length is not None and length.isdigit() else size
        if size is not None and total != size:
            raise DataError(f"{url} has {total} bytes and should have {size}; put a good copy there by hand.")
        with part.open("ab" if goes_on else "wb") as file, progress_bar(part.stem, done, total, progress) as advance:
            _copy(response, file, advance, None if total is None else total - done)
            arrived = file.tell()  # in append mode, counted from the beginning of the file
        if total is not None and arrived > total:
            part.unlink()
            raise DataError(f"{url} sends more than {total} bytes; put a good copy there by hand.")
        if total is not None and arrived < total:
            raise DataError(
                f"{url} broke off after {arrived} of {total} bytes; try again, and it goes on where it stopped."
            )


def _copy(
    source: http.client.HTTPResponse, target: BinaryIO, advance: Callable[[int], None], limit: int | None
) -> None:
    """Copy until the end, or until more than ``limit`` bytes have come."""
    copied = 0
    while (limit is None or copied <= limit) and (piece := source.read(_PIECE)):
        target.write(piece)
        copied += len(piece)
        advance(len(piece))
