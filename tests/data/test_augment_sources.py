"""Each named scenario says which changes leave its classes alone."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from wrssl.data import Scenario, load_scenario
from wrssl.data.augment.kinds import Photos, Shapes, Table
from wrssl.data.sources import cifar, svhn
from wrssl.errors import OptionError


def color_images(number: int, classes: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    pixels = np.random.default_rng(seed).integers(0, 256, (number, 3, 32, 32), dtype=np.uint8)
    return pixels, np.arange(number) % classes


def test_moons_digits_and_mnist(small_mnist):
    moons, digits, mnist = load_scenario("moons"), load_scenario("digits"), load_scenario("mnist", data_dir=small_mnist)
    assert (moons.augment, digits.augment, mnist.augment) == ("table", "shapes", "shapes")
    assert isinstance(moons.augmentation, Table)
    assert isinstance(digits.augmentation, Shapes)
    assert mnist.augmentation.background == -1


@pytest.mark.parametrize(("name", "kind"), [("cifar10", "photos"), ("cifar100", "photos"), ("svhn", "signs")])
def test_color_images(name, kind, monkeypatch, tmp_path):
    classes = 100 if name == "cifar100" else 10
    train, test = color_images(800, classes, 0), color_images(200, classes, 1)
    monkeypatch.setattr(cifar, "locate", lambda *place: Path("train"))
    monkeypatch.setattr(cifar, "read_cifar", lambda path, name: (train, test))
    monkeypatch.setattr(svhn, "locate", lambda places, *place: places[0])
    monkeypatch.setattr(svhn, "read_svhn", lambda path: train if "train" in path.name else test)
    scenario = load_scenario(name, data_dir=tmp_path, labels_per_class=2)
    assert scenario.augment == kind
    assert isinstance(scenario.augmentation, Photos)
    assert scenario.augmentation.mirrors == (kind == "photos")


def test_own_data():
    rng = np.random.default_rng(0)
    tables, labels = [rng.normal(size=(6, 4)).astype(np.float32) for _ in range(2)], [0, 1, 2] * 2
    assert Scenario((tables[0], labels), tables[1], augment="none").augmentation is None
    with pytest.raises(OptionError, match="which are a table"):
        Scenario((tables[0], labels), tables[1], augment="photos")
