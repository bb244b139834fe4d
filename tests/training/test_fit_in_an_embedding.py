"""One space from the first row to the last: fit, verdicts, predict, load, resume and audit in an embedding."""

from __future__ import annotations

import importlib.util
import json

import numpy as np
import pytest
from PIL import Image

import wrssl
from wrssl.config import FitConfig
from wrssl.embedding import EMBEDDERS, Embedder
from wrssl.errors import OptionError
from wrssl.training import resume_run, see


class Colors(Embedder):
    """The mean and the spread of each color of the four quarters of a picture."""

    kind, dim, side, batch = "image", 24, None, 4

    def __init__(self, fingerprint="colors-1"):
        self.fingerprint, self.asked, self.gone = fingerprint, 0, False

    def rows(self, items):
        self.asked += len(items)
        found = []
        for item in items:
            quarters = [q for half in np.array_split(item, 2) for q in np.array_split(half, 2, axis=1)]
            found.append(np.concatenate([np.r_[q.mean((0, 1)), q.std((0, 1))] for q in quarters]))
        return np.array(found, np.float32) / 255


@pytest.fixture
def colors(tmp_path, monkeypatch):
    """The embedder ``colors``, registered, with a cache of its own."""
    monkeypatch.setenv("WRSSL_CACHE", str(tmp_path / "cache"))
    made = Colors()

    def make():
        if made.gone:
            raise OptionError("The embedder colors needs a package; install it.")
        return made

    with EMBEDDERS.isolated():
        EMBEDDERS.register("colors")(make)
        yield made


@pytest.fixture
def folders(tmp_path):
    """Red and blue pictures, twelve labels each; the pool has both, and green ones."""
    random = np.random.default_rng(0)

    def write(path, color):
        path.parent.mkdir(parents=True, exist_ok=True)
        picture = np.array(color) + random.normal(0, 25, (16, 20, 3))
        Image.fromarray(picture.clip(0, 255).astype(np.uint8)).save(path)

    kinds = {"red": (190, 60, 70), "blue": (60, 70, 190), "green": (60, 190, 60)}
    for name in ("red", "blue"):
        for k in range(16):
            write(tmp_path / ("test" if k >= 12 else "labeled") / name / f"{k}.png", kinds[name])
    for k in range(90):
        write(tmp_path / "pool" / f"{k:02d}.png", kinds[("red", "blue", "green")[k % 3]])
    (tmp_path / "pool" / "broken.png").write_text("no picture")
    return tmp_path


def scenario(folders):
    return wrssl.Scenario.from_folders(folders / "labeled", folders / "pool", test=folders / "test")


def pool_files(folders):
    return sorted(path for path in (folders / "pool").iterdir() if path.name != "broken.png")


def test_a_run_keeps_to_its_embedding(folders, colors):
    out = folders / "run"
    scn = scenario(folders)
    result = wrssl.fit(scn, embedder="colors", steps=150, seed=0, out=out)
    assert "labeled" not in vars(scn), "nothing was decoded to pixels"
    assert result.metrics["test_accuracy"] == 1.0
    config = json.loads((out / "config.json").read_text())
    assert (config["model"], config["embedder"], config["input_shape"]) == ("linear", "colors", [24])
    assert config["embedding"]["fingerprint"] == "colors-1"
    assert result.skipped == [("broken.png", "not an image, whatever its name says")]
    score = result.verdicts.set_index("id")["ood_score"]
    foreign = np.arange(90) % 3 == 2
    assert np.mean(score[foreign].to_numpy()[:, None] > score[~foreign].to_numpy()) > 0.7  # AUROC, from 24 labels

    files = pool_files(folders)
    stored = wrssl.load(out)
    table, skipped = stored.judge_files([folders / "pool"])
    assert [name for name, _ in skipped] == [str(folders / "pool" / "broken.png")]
    assert table["ood_score"].rank().corr(score.reset_index(drop=True).rank()) > 0.9
    rows = wrssl.embed(files, "colors")
    for given in (files, [str(path) for path in files], rows, [np.asarray(Image.open(path)) for path in files]):
        assert np.array_equal(stored.predict_proba(given), result.predict_proba(rows))


def test_another_fingerprint_and_a_missing_embedder_are_refused(folders, colors):
    wrssl.fit(scenario(folders), embedder="colors", steps=2, out=folders / "run")
    colors.fingerprint = "colors-2"
    with pytest.raises(OptionError, match="This run is in the embedding colors-1, and colors is colors-2 here"):
        wrssl.load(folders / "run").predict(pool_files(folders))
    colors.gone = True
    with pytest.raises(OptionError, match="needs a package; install it"):
        wrssl.load(folders / "run").predict(pool_files(folders))
    rows = np.zeros((2, 24), np.float32)
    assert len(wrssl.load(folders / "run").predict(rows)) == 2  # rows need no embedder


def test_an_embedder_of_the_user_is_given_again(folders, colors):
    mine = Colors("mine-1")
    result = wrssl.fit(scenario(folders), embedder=mine, steps=2, out=folders / "run")
    files = pool_files(folders)
    assert result.config["embedder"] == "own embedder"
    with pytest.raises(OptionError, match=r"wrssl.load\(RUN, embedder=...\)"):
        wrssl.load(folders / "run").predict(files)
    assert np.array_equal(wrssl.load(folders / "run", embedder=mine).predict(files), result.predict(files))


def test_a_run_that_stopped_goes_on_with_the_same_rows(folders, colors):
    class Stop(wrssl.Callback):
        def on_step(self, trainer, outcome):
            if trainer.done == 30:
                raise KeyboardInterrupt

    whole = wrssl.fit(scenario(folders), embedder="colors", steps=60, seed=1, out=folders / "whole", fallback=False)
    with pytest.raises(KeyboardInterrupt):
        wrssl.fit(
            scenario(folders), embedder="colors", steps=60, seed=1, out=folders / "part", fallback=False,
            callbacks=[Stop()],
        )  # fmt: skip
    colors.fingerprint = "colors-2"
    with pytest.raises(OptionError, match="was begun in the embedding colors-1, and colors is colors-2 now"):
        resume_run(folders / "part")
    colors.fingerprint = "colors-1"
    resumed = resume_run(folders / "part")
    assert resumed.verdicts.equals(whole.verdicts)
    for name, value in whole.model.state_dict().items():
        assert np.array_equal(resumed.model.state_dict()[name], value), name


def test_an_own_embedder_cannot_be_resumed_from_the_directory_alone(folders, colors):
    with pytest.raises(KeyboardInterrupt):
        wrssl.fit(scenario(folders), embedder=Colors("mine-1"), steps=5, out=folders / "run", callbacks=[Interrupt()])
    with pytest.raises(OptionError, match="used an embedder of yours; go on from Python"):
        resume_run(folders / "run")


class Interrupt(wrssl.Callback):
    def on_step(self, trainer, outcome):
        raise KeyboardInterrupt


def test_views_are_embedded_only_for_methods_that_compare_them(folders, colors):
    counts = {}
    for method in ("vat", "pi"):
        before = colors.asked
        result = wrssl.fit(scenario(folders), embedder="colors", method=method, steps=3, seed=0, fallback=False)
        counts[method] = colors.asked - before
        assert result.config["embedding"]["views"] == (4 if method == "pi" else 0)
    assert counts["vat"] == 24 + 90 + 8
    assert counts["pi"] == 4 * (24 + 90)  # the rows themselves are in the cache
    once = wrssl.fit(scenario(folders), embedder="colors", method="mt", steps=3, seed=0, views=1, fallback=False)
    assert once.config["embedding"]["views"] == 1


@pytest.mark.parametrize("method", ["pi", "mt", "uda", "fixmatch", "mixmatch"])
@pytest.mark.parametrize("weights", ["wr", "mwn"])
def test_methods_train_on_views(folders, colors, method, weights):
    result = wrssl.fit(
        scenario(folders), embedder="colors", method=method, weights=weights, steps=30, seed=0, views=2, fallback=False
    )
    assert result.metrics["test_accuracy"] > 0.8
    assert len(result.verdicts) == 90


def test_a_model_that_is_named_gets_the_rows(folders, colors):
    result = wrssl.fit(scenario(folders), embedder="colors", model="two-layer", steps=30, seed=0, fallback=False)
    assert result.config["model"] == "two-layer"
    assert result.model.fc.in_features == 24


def test_the_audit_is_in_the_embedding_too(folders, colors):
    found = wrssl.audit(scenario(folders), embedder="colors", steps=30, repeats=2, method="pi", views=1, progress=False)
    assert {len(values) for values in found.accuracies.values()} == {2}
    assert min(map(min, found.accuracies.values())) > 0.8


def test_a_pickled_result_finds_its_embedder_by_name(folders, colors):
    import pickle

    result = wrssl.fit(scenario(folders), embedder="colors", steps=2, seed=0)
    again = pickle.loads(pickle.dumps(result))
    assert again.embedder is None
    assert np.array_equal(again.predict(pool_files(folders)), result.predict(pool_files(folders)))


def test_without_the_extra_photographs_are_trained_as_pixels_and_it_is_said_once(tmp_path, monkeypatch):
    find = importlib.util.find_spec
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None if "lite0" in name else find(name))
    y, x = np.mgrid[0:70, 0:80] / 30
    for k in range(24):
        path = tmp_path / ("pool" if k >= 12 else f"labeled/{k % 2}") / f"{k}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        waves = [np.sin((k + 2) * x + c) * np.cos((3 + c) * y + k) for c in range(3)]
        Image.fromarray(np.uint8(127.5 + 120 * np.stack(waves, 2))).save(path)
    monkeypatch.setenv("WRSSL_CACHE", str(tmp_path / "cache"))
    said = []
    scn = wrssl.Scenario.from_folders(tmp_path / "labeled", tmp_path / "pool")
    for _ in range(2):
        scn, config, embedder = see(scn, FitConfig(), said.append)
    result = wrssl.fit(scn, steps=2)
    assert (embedder, config.embedder, config.model) == (None, "none", "auto")
    assert len(said) == 1
    assert "41 % instead of 93 %" in said[0]
    assert sum("trained from scratch" in note for note in scn.notes) == 1
    assert result.config["input_shape"] == [3, 32, 32]
