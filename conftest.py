"""Shared by all tests: one thread, a private generator, the check of the global one, and disks that go wrong."""

from __future__ import annotations

import errno
import importlib.util
import os
import signal
from collections.abc import Callable
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, Phase, settings

torch.set_num_threads(1)

# Twenty cases per property, the same ones each time; `make campaign` tries ten times as many, new ones each time.
# Some cases train a network: a deadline per case would be about the machine, and to simplify a case that fails takes
# longer than to understand it.
COMMON = {
    "deadline": None,
    "phases": (Phase.explicit, Phase.generate),
    "suppress_health_check": [HealthCheck.too_slow, HealthCheck.data_too_large],
}
settings.register_profile("ci", max_examples=20, derandomize=True, database=None, **COMMON)
settings.register_profile("campaign", max_examples=200, database=None, print_blob=True, **COMMON)
settings.load_profile(os.environ.get("WRSSL_PROFILE", "ci"))


@pytest.fixture(scope="session", autouse=True)
def ctrl_c_arrives():
    """A shell starts background jobs with Ctrl-C ignored, and children inherit that; tests of it would fail."""
    before = signal.getsignal(signal.SIGINT)
    if before is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.fixture(scope="session")
def program() -> Callable[[str], ModuleType]:
    """A program beside the package as a module, by its path in the project."""

    def load(path: str) -> ModuleType:
        place = Path(__file__).resolve().parent / path
        spec = importlib.util.spec_from_file_location(place.stem, place)
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return module

    return load


@pytest.fixture
def generator() -> torch.Generator:
    return torch.Generator().manual_seed(0)


@pytest.fixture
def global_rng_untouched():
    """torch's and NumPy's global generators stay as they are."""
    before = torch.get_rng_state(), np.random.get_state()[1].copy()  # noqa: NPY002
    yield
    assert torch.equal(before[0], torch.get_rng_state()), "torch's global generator was used"
    assert np.array_equal(before[1], np.random.get_state()[1]), "NumPy's global generator was used"  # noqa: NPY002


@pytest.fixture(scope="session")
def real_data() -> Path:
    """The folder of the real image files; tests that need it are marked ``data``."""
    given = os.environ.get("WRSSL_DATA")
    folder = Path(given) if given else Path(__file__).resolve().parents[1] / "shared" / "data"
    if not (folder / "MNIST" / "raw").is_dir():
        pytest.skip("the real image files are not here; set WRSSL_DATA to their folder")
    return folder


class Killed(BaseException):
    """The process is gone: nothing after this is done."""


class Disk:
    """Counts what is done to the disk (written, flushed, renamed, removed) and goes wrong at the call number ``at``.

    A full disk refuses everything but removals from then on. With ``kill`` the process is gone: that call and all later
    ones do nothing, removals among them, and a file that is being written is left half done.
    """

    def __init__(self, monkeypatch, at=None, kill=False):
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
