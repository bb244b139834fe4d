"""The files of public data sets: where they are on this machine, where the official ones are, and how to fetch them.

A download is resumable, checksummed, and never half there under its final name.
"""

from __future__ import annotations

import hashlib
import http.client
import os
import shutil
import urllib.error
import urllib.request
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from wrssl.errors import DataError
from wrssl.progress import Tick, bar

_PIECE = 1 << 18
_TIMEOUT = 30.0
_MAX_MEMBER = 1 << 30  # bytes of a file in an archive


@dataclass(frozen=True)
class Address:
    """Where one file can be fetched.

    Attributes:
        urls: the official address first, then mirrors.
        md5: checksum of the file. The publishers and common loaders give MD5; it guards against damage.
    """

    urls: tuple[str, ...]
    md5: str


def _files(bases: tuple[str, ...], checksums: dict[str, str]) -> dict[str, Address]:
    return {name: Address(tuple(base + name for base in bases), md5) for name, md5 in checksums.items()}


MNIST = _files(
    ("http://yann.lecun.com/exdb/mnist/", "https://ossci-datasets.s3.amazonaws.com/mnist/"),
    {
        "train-images-idx3-ubyte.gz": "f68b3c2dcbeaaa9fbdd348bbdeb94873",
        "train-labels-idx1-ubyte.gz": "d53e105ee54ea40749a09fcbcd1e9432",
        "t10k-images-idx3-ubyte.gz": "9fb629c4189551a2d022fa330f9573f3",
        "t10k-labels-idx1-ubyte.gz": "ec29112dd5afa0611ce80d1b7f02629c",
    },
)

FASHION = _files(
    ("http://fashion-mnist.s3-website.eu-central-1.amazonaws.com/",),
    {
        "train-images-idx3-ubyte.gz": "8d4fb7e6c68d591d4c3dfef9ec88bf0d",
        "train-labels-idx1-ubyte.gz": "25c81989df183df01b3e8a0aad5dffbe",
        "t10k-images-idx3-ubyte.gz": "bef4ecab320f06d8554ea6380940ec79",
        "t10k-labels-idx1-ubyte.gz": "bb300cfdad3c16e7a12a480ee83cd310",
    },
)

# One archive with all splits of EMNIST; only the letters are taken out of it.
EMNIST_ARCHIVE = Address(
    (
        "https://biometrics.nist.gov/cs_links/EMNIST/gzip.zip",
        "https://www.itl.nist.gov/iaui/vip/cs_links/EMNIST/gzip.zip",
    ),
    "58c8d27c78d21e728a6bc7b3cc06412e",
)

CIFAR10 = Address(("https://www.cs.toronto.edu/~kriz/cifar-10-python.tar.gz",), "c58f30108f718f92721af3b95e74349a")
CIFAR100 = Address(("https://www.cs.toronto.edu/~kriz/cifar-100-python.tar.gz",), "eb9058c3a382ffc7106e4002c42a8d85")

SVHN = _files(
    ("http://ufldl.stanford.edu/housenumbers/",),
    {
        "train_32x32.mat": "e26dedcc434d2e4c54c9b2d4a06d8373",
        "test_32x32.mat": "eb5a983be6a315427106f1b164d9cef3",
        "extra_32x32.mat": "a93ce644f1a588dc4d68dda5feec44a7",
    },
)


def data_folder(data_dir: str | os.PathLike[str] | None = None) -> Path:
    """The data folder: ``data_dir``, else ``$WRSSL_DATA``, else ``wrssl`` in the user's cache folder."""
    if data_dir is not None:
        return Path(data_dir).expanduser()
    if os.environ.get("WRSSL_DATA"):
        return Path(os.environ["WRSSL_DATA"]).expanduser()
    return Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser() / "wrssl"


def locate(candidates: list[Path], address: Address, target: Path, download: bool) -> Path:
    """The first candidate that exists; else the downloaded file; else a ``DataError`` that says where to get it.

    An existing file is used as it is, without a checksum: repacked copies are fine, as the readers check what they
    read.

    Args:
        candidates: possible places, best first.
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
        progress: show a bar; default after two seconds where standard error is a terminal.

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
    """One HTTP request that completes ``part``; after an interruption, what has arrived stays there."""
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
        with (
            part.open("ab" if goes_on else "wb") as file,
            bar(part.stem, total, done=done, show=progress, unit="bytes") as advance,
        ):
            _copy(response, file, advance, None if total is None else total - done)
            arrived = file.tell()  # in append mode, counted from the beginning of the file
        if total is not None and arrived > total:
            part.unlink()
            raise DataError(f"{url} sends more than {total} bytes; put a good copy there by hand.")
        if total is not None and arrived < total:
            raise DataError(
                f"{url} broke off after {arrived} of {total} bytes; try again, and it goes on where it stopped."
            )


def _copy(source: http.client.HTTPResponse, target: BinaryIO, advance: Tick, limit: int | None) -> None:
    """Copy until the end, or until more than ``limit`` bytes have come."""
    copied = 0
    while (limit is None or copied <= limit) and (piece := source.read(_PIECE)):
        target.write(piece)
        copied += len(piece)
        advance(len(piece))


def take_from_zip(archive: Path, wanted: dict[str, Path]) -> None:
    """Write members of a zip file to given paths; nothing else in it is looked at.

    The names of the written files come from the caller, never from the archive, so nothing can land outside its folder.
    Each file appears under its final name only when it is complete.

    Args:
        archive: the zip file.
        wanted: member name → path to write.
    """
    try:
        with zipfile.ZipFile(archive) as file:
            for member, target in wanted.items():
                info = file.getinfo(member)
                if info.file_size > _MAX_MEMBER:
                    raise DataError(f"{member} in {archive} is larger than expected; fetch the archive again.")
                part = target.with_name(target.name + ".part")
                try:
                    with file.open(info) as source, part.open("wb") as sink:
                        shutil.copyfileobj(source, sink)
                    os.replace(part, target)
                finally:
                    part.unlink(missing_ok=True)
    except DataError:
        raise
    except KeyError as error:
        raise DataError(f"{archive} does not hold {error.args[0]}; fetch the archive again.") from error
    except OSError as error:
        raise DataError(f"{archive} cannot be unpacked ({error}); check the disk and its permissions.") from error
    except Exception as error:  # a damaged archive fails in many ways: unknown compression, password, wrong checksum
        raise DataError(f"{archive} is a damaged zip file ({error}); remove it and fetch it again.") from error
