"""Whatever data a user gives: a clear error or a correct result, never a silent NaN or a broken run directory."""

from __future__ import annotations

import re
import warnings
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import wrssl

METHODS = ["supervised", "pl", "pi", "mt", "vat", "entmin", "uda", "fixmatch", "mixmatch"]
WEIGHTS = ["none", "prior", "wr", "wr-instance", "wr-cluster", "l2rw", "mwn", "ds3l", "uasd"]
LABELS = {
    "numbers": lambda y: y,
    "negative": lambda y: y - 7,
    "floats": lambda y: y.astype(float),
    "booleans": lambda y: y > 0,
    "words": lambda y: np.array(["<b>", "ä\n", "NA"])[y],
    "objects": lambda y: np.array(["cat", "dog", "3"], dtype=object)[y],
    "bytes": lambda y: np.array([b"a", b"b", b"\xff"])[y],
    "list": lambda y: y.tolist(),
    "halves": lambda y: y + 0.5,
    "large": lambda y: y.astype(np.uint64) + np.uint64(2**63),
    "dates": lambda y: np.array(["2020-01-01", "2021-01-01", "2022-01-01"], dtype="datetime64[D]")[y],
    "complex": lambda y: y * 1j,
    "tuples": lambda y: [(int(k), 1) for k in y],
    "none": lambda y: [None if k else 1 for k in y],
    "mixed": lambda y: np.array([1, "a", 2.5], dtype=object)[y],
    "nan": lambda y: np.where(y == 0, np.nan, y),
    "column": lambda y: y[:, None],
    "digits": lambda y: np.array(["01", "2", "1e3"])[y],
    "surrogates": lambda y: np.array(["a", "\udcff", "b"], dtype=object)[y],
    "object nan": lambda y: np.array([1.0, float("nan"), 2.0], dtype=object)[y],
    "object bytes": lambda y: np.array([b"a", b"b", b"c"], dtype=object)[y],
    "object numbers": lambda y: np.array([np.int64(4), 2, 3], dtype=object)[y],
    "single": lambda y: y.astype(np.float32) + np.float32(0.1),
}

runs = st.fixed_dictionaries(
    {
        "method": st.sampled_from(METHODS),
        "weights": st.sampled_from(WEIGHTS),
        "bn": st.sampled_from(["batch", "frozen", "eval", "weighted"]),
        "batch_size": st.integers(2, 12),
        "steps": st.integers(1, 5),
        "seed": st.integers(0, 3),
        "fallback": st.just(False),
    }
)
seeds = st.integers(0, 1000)


def blobs(size, seed, classes=2, features=3):
    own = np.random.default_rng(seed)
    y = np.arange(size) % classes
    return (own.normal(size=(size, features)) + 2 * y[:, None]).astype(np.float32), y


def data(seed, labels=8, pool=20, validation=8, classes=2):
    """The arguments of a scenario, as fresh arrays."""
    return {
        "labeled": list(blobs(labels, seed, classes)),
        "unlabeled": blobs(pool, seed + 1, classes)[0],
        "validation": list(blobs(validation, seed + 2, classes)) if validation else None,
        "test": list(blobs(6, seed + 3, classes)),
    }


def correct(result, pool):
    """What must be true of every result."""
    assert result.weights.shape == (len(pool),)
    assert ((result.weights >= 0) & (result.weights <= 1)).all()
    verdicts = result.verdicts
    assert len(verdicts) == len(pool)
    assert set(verdicts["verdict"]) <= {"keep", "doubt", "drop"}
    for column in ("weight", "ood_score", "confidence"):
        values = verdicts[column].to_numpy(dtype=float)
        assert ((values >= 0) & (values <= 1)).all(), column
    p = result.predict_proba(pool)
    assert np.isfinite(p).all()
    assert np.allclose(p.sum(1), 1)
    assert np.isin(result.predict(pool), result.classes).all()
    assert 0 <= result.metrics["test_accuracy"] <= 1
    assert result.history["loss"].notna().all()


def fitted(arguments, options):
    """A result, or None where the data was refused in one sentence; the run directory is whole in any case."""
    with TemporaryDirectory() as place:
        out = Path(place) / "run"
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                scenario = wrssl.Scenario(**arguments)
                result = wrssl.fit(scenario, "mlp", out=out, progress=False, **options)
        except wrssl.WRSSLError as error:
            refused = str(error)
        else:
            refused = None
        if refused is not None:
            assert re.fullmatch(r"[^\n]+\.", refused)
            assert not out.exists() or not any(out.iterdir()) or unfinished(out)
            return None
        correct(result, scenario.unlabeled)
        stored = wrssl.load(out)
        assert stored.predict(scenario.unlabeled).tolist() == result.predict(scenario.unlabeled).tolist()
        assert stored.verdicts["pseudo_label"].tolist() == result.verdicts["pseudo_label"].tolist()
        return result


def unfinished(out):
    """Loading says that the run can be resumed."""
    try:
        wrssl.load(out)
    except wrssl.WRSSLError as error:
        return "not finished" in str(error)
    return False


VALUES = [np.nan, np.inf, -np.inf, 3e38, -3e38, 1e20, 1e16, 1e14, -1e10, 1e-40, 0.0]


@given(runs, seeds, st.sampled_from(VALUES), st.sampled_from(["labeled", "unlabeled", "validation", "test"]), st.data())
def test_one_odd_value_anywhere(options, seed, value, part, draw):
    arguments = data(seed)
    x = arguments[part] if part == "unlabeled" else arguments[part][0]
    x[draw.draw(st.integers(0, len(x) - 1)), draw.draw(st.integers(0, 2))] = value
    result = fitted(arguments, options)
    if not np.isfinite(value) or abs(value) > 1e15:
        assert result is None


@given(runs, seeds, st.sampled_from([1e-30, 1e-6, 1e4, 1e8, 1e14]), st.sampled_from([0.0, 1e6, -1e12]))
def test_data_of_any_scale(options, seed, scale, offset):
    arguments = data(seed)
    arguments["unlabeled"] = arguments["unlabeled"] * np.float32(scale) + np.float32(offset)
    for part in ("labeled", "validation", "test"):
        arguments[part][0] = arguments[part][0] * np.float32(scale) + np.float32(offset)
    fitted(arguments | {"overlap": "allow"}, options)  # with a large offset all rows may become equal


@given(runs, seeds, st.lists(st.integers(0, 2), min_size=1, max_size=3, unique=True), st.booleans())
def test_constant_features(options, seed, columns, everywhere):
    arguments = data(seed)
    arguments["unlabeled"][:, columns] = 4.0
    for part in ("labeled", "validation", "test"):
        if everywhere:
            arguments[part][0][:, columns] = 4.0
    assert fitted(arguments | {"overlap": "allow"}, options) is not None or bad_pair(options)


def bad_pair(options):
    """A method without a pool, and weights for one."""
    return options["method"] == "supervised" and options["weights"] not in ("none", "oracle", "wr")


@given(runs, seeds)
def test_one_class_is_refused(options, seed):
    arguments = data(seed)
    arguments["labeled"][1][:] = 1
    assert fitted(arguments, options) is None


@given(runs, seeds, st.integers(2, 6), st.booleans())
def test_one_label_per_class(options, seed, classes, validation):
    arguments = data(seed, labels=classes, classes=classes, validation=12 if validation else 0)
    assert fitted(arguments, options) is not None or bad_pair(options)


@given(runs, seeds, st.integers(1, 9))
def test_a_class_missing_in_validation(options, seed, size):
    arguments = data(seed, classes=3, labels=9, validation=size)
    arguments["validation"][1][:] = arguments["validation"][1] % 2
    assert fitted(arguments, options) is not None or bad_pair(options)


@given(runs, seeds, st.sampled_from(["labeled", "unlabeled", "everything"]), st.booleans())
def test_duplicate_rows(options, seed, where, allowed):
    arguments = data(seed)
    if where != "labeled":
        arguments["unlabeled"][:] = arguments["unlabeled"][0]
    if where != "unlabeled":
        arguments["labeled"][0][:] = arguments["labeled"][0][0]
    if where == "everything":
        for part in ("unlabeled", "validation", "test"):
            rows = arguments[part] if part == "unlabeled" else arguments[part][0]
            rows[:] = arguments["labeled"][0][0]
    result = fitted(arguments | {"overlap": "allow" if allowed else "error"}, options)
    assert result is not None or bad_pair(options) or (where == "everything" and not allowed)


@given(runs, seeds, st.integers(-1, 3), st.sampled_from([1, 2, 3, 30]))
def test_batches_and_pools_of_one(options, seed, batch_size, pool):
    result = fitted(data(seed, pool=pool), options | {"batch_size": batch_size})
    assert (result is None) == (batch_size < 2 or bad_pair(options))


@given(runs, seeds, st.sampled_from([(0, 3), (0, 0), (0,), (5, 0)]))
def test_an_empty_pool_is_refused(options, seed, shape):
    assert fitted(data(seed) | {"unlabeled": np.zeros(shape, np.float32)}, options) is None


@given(runs, seeds, st.sampled_from([0.0, 50.0, 1e6]))
def test_a_pool_of_foreign_members_only(options, seed, distance):
    arguments = data(seed)
    arguments["unlabeled"] = arguments["unlabeled"] + np.float32(distance)
    weights = "oracle" if seed % 3 == 0 and options["method"] != "supervised" else options["weights"]
    result = fitted(arguments | {"is_ood": np.ones(20)}, options | {"weights": weights})
    assert result is not None or bad_pair(options)
    if result is not None and weights == "oracle":
        assert (result.weights == 0).all()


REFUSED = {
    "complex", "tuples", "none", "mixed", "nan", "column", "bytes", "dates", "surrogates", "object nan", "object bytes",
}  # fmt: skip


@pytest.mark.parametrize("kind", sorted(LABELS))
@settings(max_examples=max(2, settings.default.max_examples // 10))
@given(runs, seeds, st.integers(2, 3))
def test_labels_of_any_type(kind, options, seed, classes):
    arguments = data(seed, labels=9, classes=2 if kind == "booleans" else classes)
    for part in ("labeled", "validation", "test"):
        arguments[part][1] = LABELS[kind](arguments[part][1])
    result = fitted(arguments, options)
    assert (result is None) == (kind in REFUSED or bad_pair(options))


@given(runs, seeds, st.sampled_from(["labeled", "validation", "test"]), st.integers(0, 30))
def test_as_many_labels_as_rows(options, seed, part, number):
    arguments = data(seed)
    rows = len(arguments[part][1])
    arguments[part][1] = np.arange(number) % 2
    assert (fitted(arguments, options) is not None) == (number == rows and not bad_pair(options))
