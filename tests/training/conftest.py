from __future__ import annotations

import errno
import os
from contextlib import contextmanager

import pytest

import wrssl


@pytest.fixture(scope="session")
def digits():
    return wrssl.load_scenario("digits", ood="patches", ratio=0.5, seed=0)


@pytest.fixture(scope="session")
def moons():
    return wrssl.load_scenario("moons", ood="faraway", ratio=0.5, seed=0)


class Killed(BaseException):
    """What happens after this is the work of nobody."""


class Disk:
    """Counts what is done to the disk (written, flushed, renamed, removed) and goes wrong at the call number ``at``.

    A full disk refuses everything but removals from then on. With ``kill`` the process is gone: that call and all later
    ones do nothing, removals among them, and a file that is being written is left half done.
    """

    def __init__(self, monkeypatch, at=None, kill=False):
        from pathlib import Path

        import safetensors.torch

        self.at, self.kill, self.calls = at, kill, []
        for owner, name, write in (
            (safetensors.torch, "save_file", lambda *a, **k: a[1]),
            (Path, "write_text", lambda *a, **k: a[0]),
            (os, "fsync", None),
            (os, "replace", None),
            (os, "unlink", None),
        ):
            monkeypatch.setattr(owner, name, self._watched(name, getattr(owner, name), write))

    def _watched(self, name, original, written):
        def call(*arguments, **options):
            self.calls.append(name)
            if self.at is not None and len(self.calls) > self.at and (self.kill or name != "unlink"):
                if written is not None and len(self.calls) == self.at + 1:
                    original(*arguments, **options)
                    path = str(written(*arguments, **options))
                    os.truncate(path, os.path.getsize(path) // 2)
                raise Killed if self.kill else OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            return original(*arguments, **options)

        return call


@pytest.fixture
def disk():
    """Disks that go wrong, one at a time."""

    @contextmanager
    def make(at=None, kill=False):
        with pytest.MonkeyPatch.context() as patch:
            yield Disk(patch, at, kill)

    make.Killed = Killed
    return make
