"""A pool on a Dask cluster: the same rows in the same order, each part once, whatever happens to the workers."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections import Counter
from importlib.metadata import PackageNotFoundError, version

import numpy as np
import pytest
from torch import nn

from wrssl.api import DataError, OptionError, WRSSLError
from wrssl.cli import main
from wrssl.embedding import EMBEDDERS, Embedder, distributed, embed_items, embed_on_dask, find_embedder
from wrssl.embedding.cache import open_segment
from wrssl.registry import load_plugin

pytest.importorskip("distributed", reason="the extra 'distributed' is not installed")

CLUSTER = """
import dask, json
from distributed import LocalCluster
if __name__ == "__main__":
    # Few deaths until a part is given up, and not half a minute until a dead worker is no longer asked for its rows.
    dask.config.set({"distributed.scheduler.allowed-failures": 1, "distributed.comm.timeouts.connect": "2s"})
    with LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address="127.0.0.1:0", memory_limit=0) as workers:
        print(json.dumps(workers.scheduler_address), flush=True)
        input()
"""
# What a worker runs: embedders that leave marks of what they were asked for, and one that ends its process.
PLUGIN = """
import os, signal, sys, time
from pathlib import Path
import numpy as np
import wrssl

HERE = Path(__file__).parent


@wrssl.register_embedder("numbers")
class Numbers(wrssl.Embedder):
    kind, dim, fingerprint, batch = "text", 3, "numbers-1", 4

    def rows(self, items):
        (HERE / "asked" / f"{os.getpid()}-{time.monotonic_ns()}").write_text("\\n".join(items))
        return np.array([[len(item), int(item) / 7, int(item) / 11] for item in items], np.float32)


@wrssl.register_embedder("deadly")
class Deadly(Numbers):
    def rows(self, items):
        if "150" in items and not (HERE / "killed").exists():
            (HERE / "killed").touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return super().rows(items)


@wrssl.register_embedder("always-deadly")
class AlwaysDeadly(Numbers):
    def rows(self, items):
        os.kill(os.getpid(), signal.SIGKILL)


@wrssl.register_embedder("tiles")
class Tiles(wrssl.Embedder):
    kind, dim, fingerprint, batch = "image", 3, "mean-1", 3

    def rows(self, items):
        return np.array([item.mean((0, 1)) for item in items], np.float32)


@wrssl.register_embedder("wrong")
class Wrong(Numbers):
    def rows(self, items):
        return np.zeros((1, 9), np.float32)


@wrssl.register_embedder("elsewhere")
class Elsewhere(Numbers):
    fingerprint = f"elsewhere-{os.getpid()}"
"""
TEXTS = [str(number) for number in range(300)]
EXPECTED = np.array([[len(text), int(text) / 7, int(text) / 11] for text in TEXTS], np.float32).astype(np.float16)


@pytest.fixture(scope="module")
def address():
    """Of two workers, which run in another folder."""
    program = subprocess.Popen(
        [sys.executable, "-c", CLUSTER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
        text=True, cwd="/",
    )  # fmt: skip
    yield json.loads(program.stdout.readline())
    program.communicate("\n", timeout=60)


@pytest.fixture(scope="module")
def plugin_file(tmp_path_factory):
    """Embedders that workers know by the file they are in; they stay in the memory of the workers."""
    file = tmp_path_factory.mktemp("plugin") / "embedders_of_this_test.py"
    file.write_text(PLUGIN)
    with EMBEDDERS.isolated():
        load_plugin(file)
        yield file


@pytest.fixture
def plugin(plugin_file):
    """That file, with no marks beside it."""
    shutil.rmtree(plugin_file.parent / "asked", ignore_errors=True)
    (plugin_file.parent / "asked").mkdir()
    return plugin_file


@pytest.fixture
def on_dask(address, plugin, cache):
    def call(items, name, **settings):
        return embed_on_dask(items, name, address=address, plugins=[plugin], cache=cache, **settings)

    return call


def asked(plugin):
    """How often each item was embedded, and by which processes."""
    marks = list((plugin.parent / "asked").iterdir())
    return Counter("\n".join(mark.read_text() for mark in marks).split()), {mark.name.split("-")[0] for mark in marks}


def stored_keys(cache):
    segments = [open_segment(path, 3) for path in cache.rglob("*.rows")]
    return [key.tobytes() for segment in segments for key in segment.keys]


def test_every_item_is_embedded_once_by_workers_and_the_rows_are_in_order(on_dask, plugin, cache):
    found = on_dask(TEXTS, "numbers")
    assert found.computed == 300
    assert found.readable.all()
    assert np.array_equal(found.rows[0], EXPECTED)
    times, processes = asked(plugin)
    assert times == Counter(TEXTS)
    assert str(os.getpid()) not in processes
    assert len(processes) == 2
    assert len(stored_keys(cache)) == 300
    backwards = embed_items(TEXTS[::-1], find_embedder("numbers"), cache=cache)  # the cache is the caller's
    assert backwards.computed == 0
    assert np.array_equal(backwards.rows[0], EXPECTED[::-1])


def test_what_is_known_is_not_computed_again(on_dask, plugin):
    on_dask(TEXTS[:200], "numbers")
    assert on_dask([*TEXTS, *TEXTS[:5]], "numbers").computed == 100
    assert asked(plugin)[0] == Counter(TEXTS)


def test_a_killed_worker_loses_nothing_and_its_part_is_repeated(on_dask, plugin, cache):
    found = on_dask(TEXTS, "deadly")
    assert (plugin.parent / "killed").exists()
    assert found.computed == 300
    assert np.array_equal(found.rows[0], EXPECTED)
    assert set(asked(plugin)[0]) == set(TEXTS)
    keys = stored_keys(cache)
    assert len(keys) == len(set(keys)) == 300


def test_photographs_views_and_files_that_cannot_be_read_are_as_on_one_machine(
    on_dask, photo_files, tmp_path, cache, monkeypatch
):
    (tmp_path / "bad.png").write_bytes(b"no image")
    monkeypatch.chdir(tmp_path)
    names = [os.path.relpath(path) for path in photo_files]  # the workers are in another folder
    items = [*names[:4], "bad.png", names[2], "missing.png", *names[4:]]
    here = embed_items(items, find_embedder("tiles"), views=2)
    there = on_dask(items, "tiles", views=2)
    assert there.reasons == here.reasons
    assert list(there.reasons) == [4, 6]
    assert there.readable.tolist() == here.readable.tolist()
    assert len(there.rows) == 3
    assert all(np.array_equal(one, other) for one, other in zip(here.rows, there.rows, strict=True))
    assert there.computed == here.computed == 3 * len(names)


def test_pictures_in_memory_are_sent(on_dask, pictures):
    here = embed_items(pictures, find_embedder("tiles"))
    assert np.array_equal(on_dask(pictures, "tiles").rows[0], here.rows[0])


def test_the_command_gives_the_same_file_on_a_cluster(address, plugin, tmp_path, monkeypatch, capsys, cache):
    (tmp_path / "items.txt").write_text("\n".join(TEXTS))

    def run(*options):
        monkeypatch.setenv("WRSSL_CACHE", str(tmp_path / f"cache{len(options)}"))
        out = tmp_path / f"rows{len(options)}.npz"
        line = ["embed", tmp_path / "items.txt", "--embedder", "numbers", "--out", out, "--plugin", plugin, *options]
        monkeypatch.setattr(sys, "argv", ["wrssl", *map(str, line)])
        with pytest.raises(SystemExit) as stop:
            main()
        assert stop.value.code == 0, capsys.readouterr().err
        with np.load(out) as found:
            return {name: found[name] for name in found.files}

    here, there = run(), run("--backend", "dask", "--address", address)
    assert np.array_equal(there["X"], EXPECTED)
    assert here.keys() == there.keys()
    assert all(np.array_equal(here[name], there[name]) for name in here)
    assert str(os.getpid()) in asked(plugin)[1]
    assert len(asked(plugin)[1]) > 1


def test_without_an_address_processes_of_this_machine_embed(plugin, cache):
    found = embed_on_dask(TEXTS, "numbers", plugins=[plugin], jobs=1, cache=cache)
    assert np.array_equal(found.rows[0], EXPECTED)
    times, processes = asked(plugin)
    assert times == Counter(TEXTS)
    assert len(processes) == 1
    assert str(os.getpid()) not in processes


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--backend", "dask", "--address", "tcp://127.0.0.1:9"], "No Dask scheduler answers at tcp://127.0.0.1:9"),
        (["--backend", "dask", "--address", "nonsense"], "is no address of a Dask scheduler"),
        (["--backend", "dask", "--address", ""], "is no address of a Dask scheduler"),
        (["--backend", "ray"], "There is no backend 'ray'"),
        (["--address", "tcp://127.0.0.1:9"], "add --backend dask"),
    ],
)
def test_a_cluster_that_is_not_there_is_one_sentence(plugin, tmp_path, monkeypatch, capsys, cache, options, message):
    monkeypatch.setattr(distributed, "ANSWER", 0.3)
    (tmp_path / "items.txt").write_text("1\n")
    line = ["embed", tmp_path / "items.txt", "--embedder", "numbers", "--out", tmp_path / "r.npz", *options]
    monkeypatch.setattr(sys, "argv", ["wrssl", *map(str, line)])
    with pytest.raises(SystemExit) as stop:
        main()
    said = capsys.readouterr()
    assert (stop.value.code, said.out) == (2, "")
    assert message in said.err
    assert len(said.err.strip().splitlines()) == 1
    assert not (tmp_path / "r.npz").exists()


def test_a_missing_dask_is_one_sentence_with_the_command(plugin, monkeypatch):
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(OptionError, match=r'pip install "wrssl\[distributed\]"'):
        embed_on_dask(TEXTS, "numbers")


@pytest.mark.parametrize("own", [nn.Flatten(), np.mean, "instance"])
def test_an_embedder_without_a_name_is_refused(own, letters):
    own = letters if own == "instance" else own
    with pytest.raises(OptionError, match=r"find an embedder by its name, and \w+ has none; register it"):
        embed_on_dask(TEXTS, own)


def test_an_embedder_that_differs_on_a_worker_is_refused(on_dask):
    with pytest.raises(OptionError, match=r"A worker .* is elsewhere-\d+ on a worker and elsewhere-\d+ here"):
        on_dask(TEXTS, "elsewhere")


def test_a_worker_that_does_not_know_the_embedder_is_one_sentence(address, letters):
    with EMBEDDERS.isolated():
        EMBEDDERS.register("here only")(type(letters))
        with pytest.raises(OptionError, match="A worker of the cluster cannot embed: There is no embedder 'here only'"):
            embed_on_dask(["a"], "here only", address=address)


class Stub:
    """A client of workers that are not there, or that hold other versions."""

    def __init__(self, versions):
        self.versions = versions

    def run(self, function, package, on_error):
        assert (function("wrssl"), package, on_error) == (version("wrssl"), "wrssl", "return")
        return self.versions

    def nthreads(self):
        return {}

    def next_batch(self, block):
        return []


@pytest.mark.parametrize(
    ("found", "message"), [("0.0.1", "has wrssl 0.0.1; install"), (PackageNotFoundError("wrssl"), "has no wrssl;")]
)
def test_a_worker_with_another_version_is_named_before_a_task_ends_it(found, message):
    versions = {"tcp://good:1": version("wrssl"), "tcp://bad:2": found}
    with pytest.raises(OptionError, match=f"The worker tcp://bad:2 {message}"):
        distributed.Cluster(Stub(versions)).check(None)


def test_a_cluster_that_lost_all_workers_is_not_waited_for(monkeypatch):
    monkeypatch.setattr(distributed, "GONE", 0.05)
    with pytest.raises(WRSSLError, match="All workers of the cluster are gone"):
        distributed.Cluster(Stub({}))._ended(Stub({}))


def test_a_mistake_of_the_embedder_is_said_as_on_one_machine(on_dask):
    with pytest.raises(DataError, match=r"numbers-1 gave float32 of shape \(1, 9\) for 4 items"):
        on_dask(TEXTS, "wrong")


def test_an_embedder_knows_the_name_by_which_it_was_found(plugin, letters):
    assert find_embedder("numbers").wish == "numbers"
    assert find_embedder("numbers+numbers").wish == "numbers+numbers"
    assert find_embedder(letters).wish is None
    assert Embedder.wish is None


def test_a_part_that_kills_every_worker_is_one_sentence(on_dask):
    with pytest.raises(WRSSLError, match="has ended several workers, often for want of memory"):
        on_dask(["1"], "always-deadly")
