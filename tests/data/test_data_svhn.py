from __future__ import annotations

import numpy as np
import pytest
from scipy.io import savemat

from wrssl.data import load_scenario
from wrssl.data.readers.svhn import read_svhn
from wrssl.errors import DataError


def write(path, number, seed):
    path.parent.mkdir(parents=True, exist_ok=True)
    rng = np.random.default_rng(seed)
    images = rng.integers(0, 256, (32, 32, 3, number), dtype=np.uint8)
    labels = (np.arange(number) % 10 + 1).astype(np.uint8)[:, None]
    savemat(path, {"X": images, "y": labels, "other": np.arange(3)})
    return images, labels


def test_reader(tmp_path):
    images, _ = write(tmp_path / "a.mat", 30, 0)
    got, labels = read_svhn(tmp_path / "a.mat")
    assert got.shape == (30, 3, 32, 32)
    assert got.flags.c_contiguous
    assert np.array_equal(got[4, 2], images[:, :, 2, 4])
    assert labels.tolist() == [1, 2, 3, 4, 5, 6, 7, 8, 9, 0] * 3


def test_reader_errors(tmp_path):
    good = np.zeros((32, 32, 3, 2), np.uint8)
    cases = {
        "no 32x32": {"X": good[:16], "y": [1, 2]},
        "and 3 labels": {"X": good, "y": [1, 2, 3]},
        "and 0 labels": {"X": good},
        "other than 0 to 10": {"X": good, "y": [1, 11]},
    }
    for sentence, content in cases.items():
        savemat(tmp_path / "x.mat", content)
        with pytest.raises(DataError, match=sentence):
            read_svhn(tmp_path / "x.mat")
    (tmp_path / "x.mat").write_bytes(b"no matlab file" * 30)
    with pytest.raises(DataError, match="fetch it again"):
        read_svhn(tmp_path / "x.mat")
    savemat(tmp_path / "x.mat", {"X": good, "y": [1, 2]})
    (tmp_path / "x.mat").write_bytes((tmp_path / "x.mat").read_bytes()[:300])
    with pytest.raises(DataError, match=r"x\.mat"):
        read_svhn(tmp_path / "x.mat")


def test_scenario_from_train_and_from_extra(tmp_path):
    write(tmp_path / "SVHN" / "train_32x32.mat", 300, 1)
    with pytest.raises(DataError, match=r"test_32x32.mat is not in .*SVHN; .*stanford.*download=True"):
        load_scenario("svhn", data_dir=tmp_path)
    write(tmp_path / "SVHN" / "test_32x32.mat", 60, 2)
    scn = load_scenario("svhn", data_dir=tmp_path, labels_per_class=4, ratio=0.5)
    # 150 ID: 15 held out, 20 labeled, 115 for the pool; 150 foreign, 135 used.
    assert (len(scn.labeled[0]), len(scn.validation[0]), len(scn.unlabeled), len(scn.test[0])) == (20, 15, 115, 30)
    assert (scn.classes.tolist(), scn.vat_epsilon, int(scn._is_ood.sum())) == ([0, 1, 2, 3, 4], 1.0, 58)
    extra, _ = write(tmp_path / "SVHN" / "extra_32x32.mat", 400, 3)
    more = load_scenario("svhn", data_dir=tmp_path, labels_per_class=4, ratio=0.5)
    assert len(more.unlabeled) == 200
    known = {row.tobytes() for row in np.ascontiguousarray(extra.transpose(3, 2, 0, 1))}
    assert all(row.tobytes() in known for row in more.unlabeled.numpy())
    assert (more.labeled[0] == scn.labeled[0]).all()
