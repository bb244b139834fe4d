from __future__ import annotations

import io
import os
import pickle
import tarfile
from pathlib import Path

import numpy as np
import pytest

from wrssl.data import load_scenario
from wrssl.data.readers.cifar import ARCHIVES, FILES, FOLDERS, read_cifar
from wrssl.data.sources.cifar import NAMES
from wrssl.errors import DataError

ROWS = {("cifar10", "train"): 40, ("cifar10", "test"): 30, ("cifar100", "train"): 800, ("cifar100", "test"): 200}


def contents(name: str) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    rng = np.random.default_rng(1)
    classes = 10 if name == "cifar10" else 100
    result = {}
    for part in ("train", "test"):
        for file in FILES[name, part]:
            rows = ROWS[name, part]
            result[file] = rng.integers(0, 256, (rows, 3072), dtype=np.uint8), np.arange(rows) % classes
    return result


def encode(name: str, form: str) -> dict[str, bytes]:
    files = {}
    for file, (images, labels) in contents(name).items():
        if form == "python":
            key = b"labels" if name == "cifar10" else b"fine_labels"
            files[file] = pickle.dumps({b"data": images, key: labels.tolist(), b"coarse_labels": [0]}, protocol=2)
        else:
            heads = [labels] if name == "cifar10" else [labels * 0, labels]
            files[f"{file}.bin"] = np.column_stack([*heads, images]).astype(np.uint8).tobytes()
    return files


def write(root: Path, name: str, form: str, packed: bool, files: dict[str, bytes] | None = None) -> Path:
    side = 0 if form == "python" else 1
    files = encode(name, form) if files is None else files
    if not packed:
        folder = root / FOLDERS[name][side]
        folder.mkdir(parents=True)
        for file, data in files.items():
            (folder / file).write_bytes(data)
        return folder
    root.mkdir(parents=True, exist_ok=True)
    with tarfile.open(root / ARCHIVES[name][side], "w:gz") as archive:
        for file, data in {"../../outside": b"x", **files}.items():
            info = tarfile.TarInfo(f"{FOLDERS[name][side]}/{file}")
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))
    return root / ARCHIVES[name][side]


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("form", ["python", "binary"])
@pytest.mark.parametrize("name", ["cifar10", "cifar100"])
def test_all_official_forms_give_the_same(tmp_path, name, form, packed):
    before = set(tmp_path.parent.iterdir())
    train, test = read_cifar(write(tmp_path / "a" / "b", name, form, packed), name)
    wanted = contents(name)
    for got, part in ((train, "train"), (test, "test")):
        images = np.concatenate([wanted[file][0] for file in FILES[name, part]])
        assert np.array_equal(got[0], images.reshape(-1, 3, 32, 32))
        assert np.array_equal(got[1], np.concatenate([wanted[file][1] for file in FILES[name, part]]))
    assert set(tmp_path.parent.iterdir()) == before  # archives are read, never unpacked
    assert not (tmp_path / "outside").exists()


def test_scenario_cifar10(tmp_path):
    write(tmp_path / "CIFAR10", "cifar10", "python", True)
    scn = load_scenario("cifar10", ratio=0.5, data_dir=tmp_path, labels_per_class=2)
    assert scn.classes.tolist() == ["bird", "cat", "deer", "dog", "frog", "horse"]
    # 200 training images, 120 of ID classes: 12 held out, 12 labeled, 96 for the pool; 80 foreign, 72 used.
    assert (len(scn.labeled[0]), len(scn.validation[0]), len(scn.unlabeled), len(scn.test[0])) == (12, 12, 72, 18)
    assert int(scn._is_ood.sum()) == 36
    assert (scn.vat_epsilon, scn.input_shape) == (6.0, (3, 32, 32))
    truth = {
        row.tobytes(): label
        for images, labels in contents("cifar10").values()
        for row, label in zip(images, labels, strict=True)
    }
    for row, foreign in zip(scn.unlabeled.numpy(), scn._is_ood.tolist(), strict=True):
        assert (NAMES[truth[row.tobytes()]] in ("airplane", "automobile", "ship", "truck")) == foreign
    for row, label in zip(scn.labeled[0].numpy(), scn.labeled[1].tolist(), strict=True):
        assert NAMES[truth[row.tobytes()]] == scn.classes[label]
    for ratio, foreign in ((0, 0), (1, 72)):
        assert (
            int(load_scenario("cifar10", ratio=ratio, data_dir=tmp_path, labels_per_class=2)._is_ood.sum()) == foreign
        )


def test_scenario_cifar100(tmp_path):
    write(tmp_path, "cifar100", "binary", False)
    scn = load_scenario("cifar100", ratio=0.25, data_dir=tmp_path, labels_per_class=2)
    assert scn.classes.tolist() == list(range(50))
    # 400 ID: 40 held out, 100 labeled, 260 for the pool; 400 foreign, 360 used; M0 = 260.
    assert (len(scn.labeled[0]), len(scn.validation[0]), len(scn.unlabeled), len(scn.test[0])) == (100, 40, 260, 100)
    assert int(scn._is_ood.sum()) == 65


def test_exact_copies_across_the_parts_are_dropped(tmp_path):
    files = encode("cifar10", "binary")
    bird = 3073 * 2
    test = bytearray(files["test_batch.bin"])
    test[bird : bird + 3073] = files["data_batch_1.bin"][bird : bird + 3073]
    files["test_batch.bin"] = bytes(test)
    write(tmp_path, "cifar10", "binary", False, files)
    scn = load_scenario("cifar10", data_dir=tmp_path, labels_per_class=2, ratio=0)
    assert scn.notes == []
    assert len(scn.test[0]) == 18


def test_missing_files_and_malicious_or_damaged_content(tmp_path):
    with pytest.raises(DataError, match=r"cifar-10-python.tar.gz is not in .*CIFAR10; .*toronto.*download=True"):
        load_scenario("cifar10", data_dir=tmp_path)
    good = encode("cifar10", "python")

    class Evil:
        def __reduce__(self):
            return os.system, ("true",)

    cases = {
        "system": {**good, "test_batch": pickle.dumps({b"data": Evil()}, 2)},
        "no images": {**good, "test_batch": pickle.dumps({b"data": [1], b"labels": [1]}, 2)},
        "no labels": {**good, "test_batch": pickle.dumps({b"data": np.zeros((2, 3072), np.uint8)}, 2)},
        "do not fit": {
            **good,
            "test_batch": pickle.dumps({b"data": np.zeros((1, 3072), np.uint8), b"labels": [10]}, 2),
        },
        "is not in": {file: data for file, data in good.items() if file != "data_batch_3"},
        "whole image": {
            **{file: data for file, data in encode("cifar10", "binary").items() if file != "test_batch.bin"},
            "test_batch.bin": b"123",
        },
    }
    for number, (sentence, files) in enumerate(cases.items()):
        with pytest.raises(DataError, match=sentence):
            read_cifar(write(tmp_path / str(number), "cifar10", "python", False, files), "cifar10")
    (tmp_path / "broken.tar.gz").write_bytes(b"\x1f\x8bjunk")
    with pytest.raises(DataError, match="damaged archive"):
        read_cifar(tmp_path / "broken.tar.gz", "cifar10")
