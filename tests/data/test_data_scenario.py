from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
import torch
from torch.utils.data import Dataset, IterableDataset, TensorDataset

from wrssl.data import Origin, Scenario, prepare
from wrssl.errors import DataError, OptionError, WRSSLError


def table(rows: int, seed: int = 0, features: int = 3) -> np.ndarray:
    return np.random.default_rng([seed, rows]).normal(size=(rows, features)).astype(np.float32)


def images(rows: int, seed: int = 0, shape: tuple[int, ...] = (1, 4, 4)) -> np.ndarray:
    return np.random.default_rng([seed, rows]).integers(0, 256, (rows, *shape), dtype=np.uint8)


def scenario(**changes) -> Scenario:
    given = {"labeled": (table(6), [0, 1, 2] * 2), "unlabeled": table(20), "validation": (table(9), [0, 1, 2] * 3)}
    given |= {"test": (table(12), [0, 1, 2] * 4), "is_ood": [0, 1] * 10}
    return Scenario(**(given | changes))


def test_attributes():
    scn = scenario(labeled=(table(6), ["b", "a", "c"] * 2), validation=(table(9), ["c"] * 9), test=None, name="mine")
    assert scn.classes.tolist() == ["a", "b", "c"]
    assert scn.labeled[1].tolist() == [1, 0, 2, 1, 0, 2]
    assert scn.labeled[1].dtype == torch.int64
    assert scn.validation[1].tolist() == [2] * 9
    assert (scn.test, scn.num_classes, scn.input_shape, scn.name) == (None, 3, (3,), "mine")
    assert (scn.noise, scn.vat_epsilon, scn.recipe) == (0.15, 0.5, None)
    assert scn._is_ood.dtype == torch.bool
    assert scn._is_ood.tolist() == [False, True] * 10
    assert list(scn.ids) == list(range(20))
    assert repr(scn) == "Scenario('mine', labeled=6, unlabeled=20, validation=9, classes=3, input=(3,), truth known)"
    assert "truth unknown" in repr(scenario(is_ood=None))
    assert scenario(ids=[f"f{i}" for i in range(20)]).ids[3] == "f3"


@pytest.mark.parametrize(("shape", "epsilon"), [((1, 28, 28), 3.0), ((3, 32, 32), 5.938), ((1, 8, 8), 0.857)])
def test_default_radius_for_images(shape, epsilon):
    scn = Scenario((images(4, 0, shape), [0, 1, 0, 1]), images(5, 0, shape))
    assert scn.vat_epsilon == pytest.approx(epsilon, abs=1e-3)
    own = Scenario((images(4, 0, shape), [0, 1, 0, 1]), images(5, 0, shape), vat_epsilon=7, noise=0)
    assert (own.vat_epsilon, own.noise) == (7.0, 0.0)


class Pairs(Dataset):
    def __init__(self, x, y=None, wrap=lambda v: v):
        self.x, self.y, self.wrap = x, y, wrap

    def __len__(self):
        return len(self.x)

    def __getitem__(self, index):
        value = self.wrap(self.x[index])
        return value if self.y is None else (value, self.y[index])


@pytest.mark.parametrize("wrap", [np.asarray, torch.tensor, torch.from_numpy, np.ndarray.tolist])
def test_all_containers_give_the_same(wrap):
    plain = scenario()
    other = scenario(labeled=(wrap(table(6)), [0, 1, 2] * 2), unlabeled=wrap(table(20)))
    assert torch.equal(plain.labeled[0], other.labeled[0])
    assert torch.equal(plain.unlabeled, other.unlabeled)
    if wrap is not torch.tensor:
        listed = scenario(unlabeled=[wrap(row) for row in table(20)])
        assert torch.equal(plain.unlabeled, listed.unlabeled)
    data = scenario(labeled=Pairs(table(6), [0, 1, 2] * 2, wrap), unlabeled=Pairs(table(20), None, wrap))
    assert torch.equal(plain.labeled[0], data.labeled[0])
    assert torch.equal(plain.labeled[1], data.labeled[1])
    assert torch.equal(plain.unlabeled, data.unlabeled)
    both = scenario(unlabeled=Pairs(table(20), ["anything"] * 20, wrap))
    assert torch.equal(plain.unlabeled, both.unlabeled)


def test_tensor_dataset_frame_and_pil_images():
    pd, pil = pytest.importorskip("pandas"), pytest.importorskip("PIL.Image")
    plain = scenario()
    data = TensorDataset(torch.from_numpy(table(6)), torch.tensor([0, 1, 2] * 2))
    got = scenario(labeled=data, unlabeled=pd.DataFrame(table(20)))
    assert torch.equal(plain.labeled[1], got.labeled[1])
    assert torch.equal(plain.unlabeled, got.unlabeled)
    assert torch.equal(scenario(unlabeled=TensorDataset(torch.from_numpy(table(20)))).unlabeled, plain.unlabeled)
    gray, color = images(4), images(4, 0, (3, 4, 4))
    for array, turned in ((gray, gray[:, 0]), (color, color.transpose(0, 2, 3, 1))):
        scn = Scenario(Pairs(turned, [0, 1, 0, 1], pil.fromarray), images(5, 1, array.shape[1:]))
        assert np.array_equal(scn.labeled[0].numpy(), array)


@pytest.mark.parametrize("dtype", [np.float64, np.float16, np.int64, np.int8, np.bool_, ">f4"])
def test_other_number_types_become_float32(dtype):
    x = (table(20) > 0).astype(dtype)
    scn = scenario(unlabeled=x, overlap="allow")
    assert scn.unlabeled.dtype == torch.float32
    assert np.array_equal(scn.unlabeled.numpy(), x.astype(np.float32))
    if dtype != ">f4":
        assert scenario(unlabeled=torch.from_numpy(x), overlap="allow").unlabeled.dtype == torch.float32


def test_uint8_and_float32_memory_is_shared():
    for x, make in ((table(6), table), (images(6), images)):
        u, v = make(20), make(9)
        t = torch.from_numpy(make(12))
        scn = Scenario((x, [0, 1, 2] * 2), u, (v, [0, 1, 2] * 3), (t, [0] * 12))
        for tensor, array in (
            (scn.labeled[0], x),
            (scn.unlabeled, u),
            (scn.validation[0], v),
            (scn.test[0], t.numpy()),
        ):
            assert tensor.data_ptr() == array.ctypes.data
    assert np.array_equal(scenario(unlabeled=table(20)[::-1]).unlabeled.numpy(), table(20)[::-1])


def test_a_memory_mapped_pool_stays_on_disk(tmp_path):
    pool = np.lib.format.open_memmap(tmp_path / "pool.npy", mode="w+", dtype=np.float32, shape=(400_000, 64))
    pool[:] = np.random.default_rng(0).normal(size=64)
    pool[:, 0] = np.arange(400_000)
    pool.flush()
    del pool
    pool = np.load(tmp_path / "pool.npy", mmap_mode="r")  # 102 MB, read-only
    tracemalloc.start()
    try:
        scn = Scenario((table(6, features=64), [0, 1, 2] * 2), pool, (table(9, features=64), [0, 1, 2] * 3))
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert scn.unlabeled.data_ptr() == pool.ctypes.data
    assert peak < 40 << 20


def test_prepare():
    batch = torch.tensor([[0, 51, 255]], dtype=torch.uint8)
    assert prepare(batch).tolist() == [[-1.0, pytest.approx(-0.6), 1.0]]
    assert batch.tolist() == [[0, 51, 255]]
    floats = torch.randn(3, 2, generator=torch.Generator().manual_seed(0))
    assert prepare(floats) is floats


def nan(rows: int, row: int, value: float = np.nan) -> np.ndarray:
    x = table(rows)
    x[row, 1] = value
    return x


class Stream(IterableDataset):
    def __iter__(self):
        return iter(table(6))


ERRORS = {
    "must be a pair": {"labeled": table(6)},
    "6 rows and 5 labels": {"labeled": (table(6), [0, 1, 0, 1, 0])},
    "9 rows and 8 labels": {"validation": (table(9), [0] * 8)},
    r"shape \(6, 3\); pass one label per row, for example y.argmax": {"labeled": (table(6), np.eye(6)[:, :3])},
    r"y.ravel\(\)": {"labeled": (table(6), np.zeros((6, 1)))},
    "at least two classes": {"labeled": (table(6), ["x"] * 6)},
    "cannot be sorted": {"labeled": (table(6), np.array([0, "a", None] * 2, dtype=object))},
    "Label 2 of the labeled part is nan": {"labeled": (table(6), [0.0, 1.0, np.nan] * 2)},
    r"validation part has the class 7 \(and 1 more\)": {"validation": (table(9), [0, 1, 7] * 2 + [8, 0, 0])},
    "test part has the class 'b', which no labeled": {"test": (table(12), ["b"] * 12)},
    "labeled part is empty": {"labeled": ([], [])},
    "unlabeled part is empty": {"unlabeled": table(0)},
    "unlabeled part is empty ": {"unlabeled": []},
    "test Dataset is empty": {"test": Pairs([], [])},
    r"unlabeled data has shape \(20,\)": {"unlabeled": table(20)[:, 0]},
    r"add the channel axis, for example X\[:, None\]": {"unlabeled": images(20)[:, 0]},
    r"unlabeled part have shape \(4,\), those of the labeled part \(3,\)": {"unlabeled": table(20, features=4)},
    r"test part have shape \(1, 4, 4\)": {"test": (images(12), [0] * 12)},
    "unlabeled part is uint8 and the labeled part float32": {"unlabeled": (table(20) > 0).astype(np.uint8)},
    "labeled part holds NaN or an infinite value, first in row 4": {"labeled": (nan(6, 4), [0, 1, 2] * 2)},
    "unlabeled part holds NaN or an infinite value, first in row 17": {"unlabeled": nan(20, 17, -np.inf)},
    "unlabeled part holds NaN or an infinite value, first in row 3": {"unlabeled": nan(20, 3).astype(np.float64)},
    "infinite value, first in row 2": {
        "unlabeled": np.where(np.arange(20)[:, None] == 2, 1e300, table(20).astype(float))
    },
    "validation part holds NaN": {"validation": (nan(9, 0), [0, 1, 2] * 3)},
    "test part holds NaN": {"test": (nan(12, 0), [0, 1, 2] * 4)},
    r"is_ood has shape \(3,\), the pool 20 rows": {"is_ood": [0, 1, 0]},
    "is_ood holds values other than 0 and 1": {"is_ood": [0, 2] * 10},
    "is_ood holds values other than 0 and 1 ?": {"is_ood": ["a", "b"] * 10},
    "3 ids for 20 pool rows": {"ids": "abc"},
    "differ in shape": {"unlabeled": [[1.0, 2.0], [1.0]]},
    "rows of the unlabeled data differ": {"unlabeled": [torch.zeros(2), torch.zeros(3)]},
    "Item 1 of the unlabeled Dataset has shape": {"unlabeled": Pairs([np.zeros(3), np.zeros(4)])},
    "has no length": {"unlabeled": Stream()},
    "must be pairs": {"labeled": Pairs(table(6))},
    "convert it to numbers": {"unlabeled": [["a", "b", "c"]] * 20},
    "is complex": {"unlabeled": torch.zeros(20, 3, dtype=torch.complex64)},
}


@pytest.mark.parametrize("sentence", ERRORS)
def test_errors_say_what_to_do(sentence):
    with pytest.raises(DataError, match=sentence.strip(" ?")) as caught:
        scenario(**ERRORS[sentence])
    assert isinstance(caught.value, WRSSLError)
    text = str(caught.value)
    assert text.endswith(".")
    assert "\n" not in text
    assert ";" in text  # what is wrong; what to do


def test_sparse_matrices_are_named():
    sparse = pytest.importorskip("scipy.sparse")
    with pytest.raises(DataError, match="toarray"):
        scenario(unlabeled=sparse.csr_matrix(table(20)))


def test_option_errors():
    for changes in ({"overlap": "ignore"}, {"noise": -1}, {"vat_epsilon": 0}, {"noise": float("nan")}):
        with pytest.raises(OptionError, match="must be"):
            scenario(**changes)


def test_a_very_large_finite_sum_is_no_infinity():
    large = np.full((20, 3), 1e15, np.float32)
    assert scenario(unlabeled=large).notes == []  # constant here, but not in the labeled part
    large[4, 1] = 2e15
    with pytest.raises(DataError, match=r"Row 4 of the unlabeled part holds 2e\+15"):
        scenario(unlabeled=large)


def test_what_made_a_scenario_says_where_its_rows_come_from():
    plain = scenario()
    assert (plain.recipe, plain.folders, plain.reader, plain.skipped) == (None, None, None, [])
    origin = Origin(recipe={"name": "mine"}, folders={"labeled": "x"}, skipped=[("a.png", "empty")], notes=["read"])
    scn = scenario(origin=origin)
    assert (scn.recipe, scn.folders, scn.reader) == ({"name": "mine"}, {"labeled": "x"}, None)
    assert (scn.skipped, scn.notes[0]) == ([("a.png", "empty")], "read")
    scn.skipped.append(("b.png", "empty"))
    scn.notes.clear()
    assert (len(origin.skipped), len(origin.notes)) == (1, 1)
