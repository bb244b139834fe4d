from __future__ import annotations

import hashlib
import zipfile

import numpy as np
import pytest
import torch

from wrssl.data import download, load_scenario
from wrssl.data.readers.idx import read_idx
from wrssl.data.sources import mnist
from wrssl.errors import DataError


def keys(rows) -> set[bytes]:
    return {row.tobytes() for row in np.asarray(rows)}


def raw(folder, name):
    path = folder / name
    return read_idx(path if path.exists() else path.with_name(path.name + ".gz"))


@pytest.mark.parametrize("ood", ["fashion", "emnist", "mean", "mean-wrapped", "mixed"])
def test_small_family(small_mnist, ood):
    scn = load_scenario("mnist", ood, 0.5, data_dir=small_mnist, labels_per_class=2)
    # 600 training images, 2 of them copies: 99 held out, 20 labeled, 479 for the pool.
    assert (len(scn.labeled[0]), len(scn.validation[0]), len(scn.unlabeled), len(scn.test[0])) == (20, 99, 479, 100)
    assert (int(scn._is_ood.sum()), scn.vat_epsilon, scn.noise, scn.notes) == (240, 3.0, 0.15, [])
    foreign = keys(scn.unlabeled[scn._is_ood])
    fashion = keys(raw(small_mnist, "FashionMNIST/raw/train-images-idx3-ubyte"))
    letters = keys(raw(small_mnist, "EMNIST/raw/emnist-letters-train-images-idx3-ubyte").transpose(0, 2, 1))
    shares = {"fashion": (240, 0), "emnist": (0, 240), "mean": (0, 0), "mean-wrapped": (0, 0), "mixed": (120, 120)}
    assert (len(foreign & fashion), len(foreign & letters)) == shares[ood]


def test_copies_across_and_within_parts_are_dropped(small_mnist):
    scn = load_scenario("mnist", "fashion", 0, data_dir=small_mnist, labels_per_class=1)
    train = raw(small_mnist, "MNIST/raw/train-images-idx3-ubyte")
    rest = keys(scn.labeled[0]) | keys(scn.validation[0]) | keys(scn.unlabeled)
    assert train[7].tobytes() not in rest  # a copy of a test image
    assert train[7].tobytes() in keys(scn.test[0])
    assert len(rest) == 598


def test_missing_and_wrong_files(tmp_path, to_idx):
    with pytest.raises(
        DataError, match=r"t10k-images-idx3-ubyte.gz is not in .*MNIST/raw; .*yann.lecun.com.*download=True"
    ):
        load_scenario("mnist", data_dir=tmp_path)
    folder = tmp_path / "MNIST" / "raw"
    folder.mkdir(parents=True)
    (folder / "t10k-images-idx3-ubyte").write_bytes(to_idx(np.zeros((5, 27, 28), np.uint8)))
    with pytest.raises(DataError, match="not 28x28 images"):
        load_scenario("mnist", data_dir=tmp_path)
    (folder / "t10k-images-idx3-ubyte").write_bytes(to_idx(np.zeros((5, 28, 28), np.uint8)))
    (folder / "t10k-labels-idx1-ubyte").write_bytes(to_idx(np.zeros(4, np.uint8)))
    with pytest.raises(DataError, match="5 t10k images and labels"):
        load_scenario("mnist", data_dir=tmp_path)


def test_missing_foreign_files(small_mnist, tmp_path):
    (tmp_path / "MNIST").symlink_to(small_mnist / "MNIST")
    with pytest.raises(DataError, match=r"train-images-idx3-ubyte.gz is not in .*FashionMNIST/raw; .*fashion-mnist"):
        load_scenario("mnist", "fashion", data_dir=tmp_path)
    with pytest.raises(DataError, match=r"emnist-letters-train-images-idx3-ubyte.gz is not in .*gzip.zip"):
        load_scenario("mnist", "emnist", data_dir=tmp_path)


def test_download_fetches_what_is_missing(small_mnist, tmp_path, monkeypatch):
    """The letters come out of one archive, of which nothing else is kept."""
    (tmp_path / "MNIST").symlink_to(small_mnist / "MNIST")
    letters = (small_mnist / "EMNIST/raw/emnist-letters-train-images-idx3-ubyte").read_bytes()
    asked = []

    def fetch(address, path):
        asked.append(address.urls[0])
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.name != "gzip.zip":
            path.write_bytes(raw_fashion)
            return path
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr("../evil", b"x")
            for name in mnist._LETTERS:
                archive.writestr(f"gzip/{name}", letters)
        return path

    source = small_mnist / "FashionMNIST/raw/train-images-idx3-ubyte.gz"
    raw_fashion = source.read_bytes()
    monkeypatch.setattr("wrssl.data.download.fetch_first", fetch)
    monkeypatch.setattr(mnist, "fetch_first", fetch)
    scn = load_scenario("mnist", "mixed", data_dir=tmp_path, download=True, labels_per_class=1)
    again = load_scenario("mnist", "mixed", data_dir=tmp_path, download=True, labels_per_class=1)
    assert torch.equal(scn.unlabeled, again.unlabeled)
    assert asked == [download.FASHION["train-images-idx3-ubyte.gz"].urls[0], download.EMNIST_ARCHIVE.urls[0]]
    assert sorted(path.name for path in (tmp_path / "EMNIST" / "raw").iterdir()) == sorted(mnist._LETTERS)
    assert not (tmp_path / "EMNIST" / "evil").exists()


def test_addresses_are_complete():
    every = [*download.MNIST.values(), *download.FASHION.values(), *download.SVHN.values()]
    every += [download.EMNIST_ARCHIVE, download.CIFAR10, download.CIFAR100]
    assert all(len(bytes.fromhex(item.md5)) == 16 and item.urls for item in every)
    assert len({item.md5 for item in every}) == len(every)
    assert all(url.startswith(("http://", "https://")) for item in every for url in item.urls)


@pytest.mark.data
@pytest.mark.parametrize("ood", ["fashion", "emnist", "mean", "mixed"])
def test_real_family(real_data, ood):
    scn = load_scenario("mnist", ood, 0.5, data_dir=real_data)
    sizes = (len(scn.labeled[0]), len(scn.unlabeled), len(scn.validation[0]), len(scn.test[0]))
    assert sizes == (100, 49_900, 10_000, 10_000)
    assert torch.bincount(scn.labeled[1]).tolist() == [10] * 10
    assert int(scn._is_ood.sum()) == 24_950
    assert scn.notes == []  # no exact copies in two parts


@pytest.mark.data
def test_real_letters_are_upright(real_data):
    """An upright H has more ink at the lower left than at the upper right, an upright Y less; transposing swaps it."""
    images = raw(real_data, "EMNIST/raw/emnist-letters-train-images-idx3-ubyte")
    labels = raw(real_data, "EMNIST/raw/emnist-letters-train-labels-idx1-ubyte")
    letter = {image.T.tobytes(): chr(64 + label) for image, label in zip(images, labels, strict=True)}
    scn = load_scenario("mnist", "emnist", 0.5, data_dir=real_data)
    foreign = scn.unlabeled[scn._is_ood].numpy()[:, 0]
    names = np.array([letter[image.tobytes()] for image in foreign])  # every foreign image is an upright letter
    for name, factor in (("H", 1.5), ("Y", 1 / 1.2)):
        mean = foreign[names == name].mean(axis=0)
        ratio = mean[14:, :14].mean() / mean[:14, 14:].mean()
        assert ratio > factor if factor > 1 else ratio < factor


@pytest.mark.data
def test_real_mean_images_are_made_of_taken_images(real_data):
    """By record: repeat the construction from what is in no part, and compare."""
    scn = load_scenario("mnist", "mean", 0.01, seed=1, data_dir=real_data)
    used = keys(scn.labeled[0]) | keys(scn.validation[0]) | keys(scn.test[0]) | keys(scn.unlabeled[~scn._is_ood])
    train, labels = (
        raw(real_data, "MNIST/raw/train-images-idx3-ubyte"),
        raw(real_data, "MNIST/raw/train-labels-idx1-ubyte"),
    )
    out = np.array([row.tobytes() not in used for row in train])
    taken, classes = train[out].astype(np.uint16), labels[out]
    assert len(taken) == 499
    possible = set()
    for index in range(len(taken)):
        others = classes != classes[index]
        means = ((taken[index] + taken[others]) // 2).astype(np.uint8).reshape(-1, 784)
        possible.update(hashlib.blake2b(row.tobytes(), digest_size=8).digest() for row in means)
    made = scn.unlabeled[scn._is_ood].numpy()
    assert len(made) == 499
    assert all(hashlib.blake2b(row.tobytes(), digest_size=8).digest() in possible for row in made)
