"""The state files of one model: the last two, each of them whole by itself and checked before it is used.

A file is a state after some step, in safetensors form: the tensors, and the numbers as JSON in one more of them. Its
name is the step and the SHA-256 of its content, ``000000400-3f0c….safetensors``, so a file that was torn or changed
does not match its name. Nothing is ever unpickled.
"""

from __future__ import annotations

import json
import os
import re
import warnings
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor

from wrssl.api import DataError
from wrssl.runs.files import make_folder, plain, sha256_of, write_atomically, write_tensors

NAME = re.compile(r"(\d+)-([0-9a-f]{64})\.safetensors")
PART = "state"  # the temporary file is called .state.part
NUMBERS = "numbers"  # the tensor of bytes; the others have a slash in their names


class StateWarning(UserWarning):
    """A state file is damaged, and an older one is used."""


class Snapshot(NamedTuple):
    """What a state file holds."""

    tensors: dict[str, Tensor]
    numbers: dict[str, Any]


class Generations:
    """The state files in one folder.

    Args:
        folder: made when the first file is written.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._last: Path | None = None  # written or read by this process, so known to be good

    def files(self) -> list[Path]:
        """Those that look like states, the newest first."""
        if not self.folder.is_dir():
            return []
        found = [(int(match[1]), path) for path in self.folder.iterdir() if (match := NAME.fullmatch(path.name))]
        return [path for _, path in sorted(found, reverse=True)]

    def write(self, step: int, tensors: dict[str, Tensor], numbers: dict[str, Any]) -> None:
        """Add a state; it and the one before stay, others are removed once the new one is on the disk."""
        make_folder(self.folder)
        text = torch.frombuffer(bytearray(_to_json(numbers), "utf-8"), dtype=torch.uint8)
        new = write_atomically(
            self.folder / PART,
            lambda path: write_tensors({**tensors, NUMBERS: text}, path),
            lambda path: f"{step:09d}-{sha256_of(path)}.safetensors",
        )
        for path in self.files():
            if path not in (new, self._last):
                with suppress(OSError):  # an extra file does no harm
                    os.unlink(path)
        self._last = new

    def read(self) -> Snapshot | None:
        """The newest state that is whole; None where there is no file at all.

        Raises:
            DataError: there are files, and none of them is whole.
        """
        damaged: list[str] = []
        for path in self.files():
            try:
                snapshot = _read(path)
            except (OSError, ValueError) as error:
                damaged.append(f"{path} ({error})")
                continue
            step = snapshot.numbers["step"]
            for what in damaged:
                warnings.warn(f"the state file {what} cannot be used; going on from step {step}", StateWarning, 2)
            self._last = path
            return snapshot
        if damaged:
            raise DataError(
                f"No state of this run can be used: {' and '.join(damaged)}; put back a copy of one, or delete them "
                "and resume, which then starts over."
            )
        return None


def _read(path: Path) -> Snapshot:
    """The content of a file; a ``ValueError`` or an ``OSError`` where it is not what it was."""
    from safetensors import SafetensorError, safe_open

    match = NAME.fullmatch(path.name)
    if match is None or sha256_of(path) != match[2]:
        raise ValueError("its checksum is wrong")
    try:
        with safe_open(path, framework="pt") as file:
            # Copies: the file may be removed while the run goes on.
            tensors = {key: file.get_tensor(key).clone() for key in file.keys()}  # noqa: SIM118  (not a mapping)
            numbers = json.loads(tensors.pop(NUMBERS, torch.zeros(0)).numpy().tobytes())
            if not isinstance(numbers, dict) or not isinstance(numbers.get("step"), int):
                raise ValueError("it holds no state")
            return Snapshot(tensors, numbers)
    except SafetensorError as error:
        raise ValueError(str(error)) from error


def _to_json(numbers: dict[str, Any]) -> str:
    """Lists go entry by entry: a copy of a long history as a whole would be the peak of the memory that a run needs."""
    entry = json.JSONEncoder(allow_nan=False).encode
    parts = {
        name: f"[{', '.join(entry(plain(one)) for one in value)}]" if isinstance(value, list) else entry(plain(value))
        for name, value in numbers.items()
    }
    return f"{{{', '.join(f'{entry(name)}: {text}' for name, text in parts.items())}}}"
