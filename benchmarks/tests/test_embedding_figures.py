"""The rivals of ``wrssl.embed`` compute what it computes, and the photographs are what the figures say they are."""

from __future__ import annotations

import os

import numpy as np
import pytest
from PIL import Image

from wrssl.embedding import cache_root, find_embedder
from wrssl_bench import embedding, report
from wrssl_bench.timing import torch_threads

pytestmark = pytest.mark.skipif(not embedding.can_be_embedded(), reason="the extra 'photos' is not installed")


@pytest.fixture(scope="module")
def embedded():
    """Three pictures: as the network wants them, and their rows from ``wrssl.embed`` and from both loops."""
    found, embedder = embedding.pictures(3), find_embedder("lite0")
    x = embedding.as_input(found)
    with embedding.own_cache():
        ours = embedding.ours(found, embedder)
        loops = [make(1)(x) for make in (embedding.onnx_loop, embedding.torch_loop)]
    return x, ours, loops


def test_all_three_give_the_same_rows(embedded):
    x, ours, loops = embedded
    assert x.shape == (3, 3, 224, 224)
    assert ours.shape == (3, 1280)
    assert not np.allclose(ours[0], ours[1], atol=0.05)
    for values in loops:
        assert np.abs(values - ours).max() < 0.01 + np.abs(ours).max() * 2**-10  # ours are in half precision


def test_a_loop_runs_over_every_picture_once():
    seen = []
    loop = embedding.Loop(lambda x: seen.append(x.copy()), threads=1, batch=4)
    x = np.arange(10, dtype=np.float32)
    loop(x)
    assert [len(part) for part in seen] == [4, 4, 2]
    assert np.array_equal(np.concatenate(seen), x)


def test_the_fastest_loop_is_taken(monkeypatch):
    now = [0.0]
    monkeypatch.setattr(embedding, "processors", lambda: 2)
    monkeypatch.setattr(embedding.time, "perf_counter", lambda: now[0])

    def make(threads):
        def run(x):
            now[0] += 1.0 if (threads, len(x)) == (2, 4) else 9.0 * len(x)

        return run

    found = embedding.fastest(make, np.zeros(16, np.float32))
    assert (found.threads, found.batch) == (2, 4)


def test_torch_has_its_threads_back():
    import torch

    with torch_threads(1), embedding.own_cache():
        embedding.torch_loop(2)(embedding.as_input(embedding.pictures(1)))
        assert torch.get_num_threads() == 1


def test_the_cache_is_empty_and_goes(monkeypatch, tmp_path):
    monkeypatch.setenv("WRSSL_CACHE", str(tmp_path))
    with embedding.own_cache() as folder:
        assert cache_root() == folder
        assert not list(folder.iterdir())
    assert not folder.exists()
    assert os.environ["WRSSL_CACHE"] == str(tmp_path)


def test_forty_labels_of_four_classes_and_the_rest_in_the_pool(tmp_path):
    labeled, pool = embedding.write_photos(tmp_path, 47)
    assert [len(list(folder.iterdir())) for folder in sorted(labeled.iterdir())] == [10] * 4
    files = sorted(pool.iterdir())
    assert len(files) == 7
    for path in files:
        with Image.open(path) as image:
            assert (image.format, image.size, image.mode) == ("JPEG", (256, 256), "RGB")
    assert len({path.read_bytes() for path in tmp_path.rglob("*.jpg")}) == 47
    assert 8_000 < np.mean([path.stat().st_size for path in files]) < 40_000  # as a photograph of this size


def test_a_whole_run_is_a_run(tiny):
    """The command line as it is timed, with real processes."""
    try:
        first, again = embedding.whole_runs(tiny)
    finally:
        embedding.whole_runs.cache_clear()
    assert min(first, again) > 0.5  # a process that imports torch


def test_without_the_extra_the_figures_are_left_out(monkeypatch):
    monkeypatch.setattr(embedding, "EXTRA", ("no_such_package_at_all",))
    missing = report.left_out()
    for name in (
        "embed_over_onnxruntime",
        "embed_over_torch_eager",
        "embed_over_torch_best",
        "photos_end_to_end_seconds",
        "photos_again_seconds",
    ):
        assert missing[name] == 'pip install "wrssl[photos]"'
        assert name not in report.known_keys()
