"""CIFAR-10 as image files, in a folder and in an archive."""

from __future__ import annotations

import io
import tarfile

import numpy as np
import pytest
from PIL import Image

from wrssl.data import find_scenario, load_scenario
from wrssl.data.readers.cifar import IMAGE_ARCHIVE, IMAGE_FOLDER, read_cifar_images
from wrssl.data.sources import cifar
from wrssl.data.sources.cifar import NAMES
from wrssl.errors import DataError

CLASSES = NAMES.tolist()


def encoded(pixels: np.ndarray, form: str = "PNG") -> bytes:
    stream = io.BytesIO()
    Image.fromarray(pixels).save(stream, form)
    return stream.getvalue()


def files(per_class: int = 14, tests: int = 2) -> dict[str, bytes]:
    rng = np.random.default_rng(0)
    return {
        f"{part}/{kind}/{number:04}.png": encoded(rng.integers(0, 256, (32, 32, 3), dtype=np.uint8))
        for part, count in (("test", tests), ("train", per_class))
        for kind in CLASSES
        for number in range(count)
    }


def write_folder(root, content):
    for name, data in content.items():
        path = root / IMAGE_FOLDER / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    return root / IMAGE_FOLDER


def write_archive(root, content, reverse=False):
    root.mkdir(parents=True, exist_ok=True)
    with tarfile.open(root / IMAGE_ARCHIVE, "w:xz") as archive:
        for name in sorted(content, reverse=reverse):
            info = tarfile.TarInfo(f"{IMAGE_FOLDER}/{name}")
            info.size = len(content[name])
            archive.addfile(info, io.BytesIO(content[name]))
    return root / IMAGE_ARCHIVE


def test_folder_and_archive_give_the_same_in_a_fixed_order(tmp_path):
    content = files()
    places = [
        write_folder(tmp_path / "a", {**content, "README.txt": b"words", "train/zebra/0.png": b"no class of ours"}),
        write_archive(tmp_path / "b", content),
        write_archive(tmp_path / "c", content, reverse=True),
    ]
    (train, test), *others = (read_cifar_images(place, CLASSES) for place in places)
    assert (train[0].shape, train[0].dtype, test[0].shape) == ((140, 3, 32, 32), np.uint8, (20, 3, 32, 32))
    assert train[1].tolist() == [label for label in range(10) for _ in range(14)]
    wanted = np.asarray(Image.open(io.BytesIO(content["train/cat/0003.png"])))
    assert np.array_equal(train[0][3 * 14 + 3], wanted.transpose(2, 0, 1))
    for other in others:
        for one, two in zip((train, test), other, strict=True):
            assert np.array_equal(one[0], two[0])
            assert np.array_equal(one[1], two[1])


def test_scenario(tmp_path):
    with pytest.raises(DataError, match=r"cifar-10-python.tar.gz is not in .*CIFAR10"):
        find_scenario("cifar10", data_dir=tmp_path)
    write_archive(tmp_path / "CIFAR10", files())
    find_scenario("cifar10", data_dir=tmp_path)
    scn = load_scenario("cifar10", data_dir=tmp_path, labels_per_class=2)
    assert scn.classes.tolist() == ["bird", "cat", "deer", "dog", "frog", "horse"]
    # 84 ID images: 8 held out, 12 labeled, 64 for the pool; 56 foreign, of which 51 are used.
    assert (len(scn.labeled[0]), len(scn.validation[0]), len(scn.unlabeled), len(scn.test[0])) == (12, 8, 51, 12)


def test_an_archive_is_decoded_once_until_it_changes(tmp_path, monkeypatch):
    decoded = []
    monkeypatch.setattr(cifar, "read_cifar_images", lambda *given: decoded.append(given) or read_cifar_images(*given))
    write_archive(tmp_path, files())
    few = {"labels_per_class": 2, "validation_size": 6, "data_dir": tmp_path}
    first = load_scenario("cifar10", seed=0, **few)
    first.unlabeled.zero_()  # a user's own copy
    other, again = load_scenario("cifar10", seed=1, **few), load_scenario("cifar10", seed=0, **few)
    assert len(decoded) == 1
    assert again.unlabeled.any()
    assert not np.array_equal(other.unlabeled, again.unlabeled)
    write_archive(tmp_path, files(per_class=15))
    assert len(load_scenario("cifar10", seed=0, **few).unlabeled) > len(again.unlabeled)
    assert len(decoded) == 2


def test_what_is_no_image_of_32_pixels_is_named(tmp_path):
    content = files(1, 1)
    cases = {
        "0000.png is no image or is damaged": b"\x89PNG nonsense",
        "is an image of 64x8, not 32x32": encoded(np.zeros((8, 64, 3), np.uint8)),
    }
    for number, (sentence, data) in enumerate(cases.items()):
        place = write_archive(tmp_path / str(number), {**content, "train/dog/0000.png": data})
        with pytest.raises(DataError, match=sentence):
            read_cifar_images(place, CLASSES)
    whole = write_archive(tmp_path / "cut", content)
    whole.write_bytes(whole.read_bytes()[:-400])
    with pytest.raises(DataError, match="damaged archive"):
        read_cifar_images(whole, CLASSES)
    only = write_folder(tmp_path / "only", {name: data for name, data in content.items() if name.startswith("test")})
    with pytest.raises(DataError, match="holds no images train/<class>/<file>"):
        read_cifar_images(only, CLASSES)
    large = write_archive(tmp_path / "large", {**content, "train/dog/0000.png": bytes((1 << 20) + 1)})
    with pytest.raises(DataError, match="larger than expected"):
        read_cifar_images(large, CLASSES)


@pytest.mark.parametrize("mode", ["L", "RGBA", "CMYK"])
def test_gray_and_other_modes_become_three_channels(tmp_path, mode):
    content = files(1, 1)
    stream = io.BytesIO()
    Image.fromarray(np.full((32, 32, 3), 77, np.uint8)).convert(mode).save(stream, "TIFF")
    train, _ = read_cifar_images(write_folder(tmp_path, {**content, "train/dog/0000.png": stream.getvalue()}), CLASSES)
    assert (train[0][5] == 77).all()
