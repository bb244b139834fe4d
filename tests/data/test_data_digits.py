from __future__ import annotations

import numpy as np
import pytest
import torch
from sklearn.datasets import load_digits

from wrssl.data import load_scenario
from wrssl.data.sources.digits import photo_patches
from wrssl.errors import DataError


def keys(rows) -> set[bytes]:
    return {row.tobytes() for row in np.asarray(rows)}


@pytest.fixture(scope="module")
def official() -> dict[bytes, int]:
    values, labels = load_digits(return_X_y=True)
    images = np.floor(values * 255 / 16 + 0.5).astype(np.uint8)
    return {row.tobytes(): int(label) for row, label in zip(images, labels, strict=True)}


@pytest.mark.parametrize("ood", ["patches", "mean", "mixed"])
def test_sizes_and_settings(ood):
    scn = load_scenario("digits", ood)
    assert (len(scn.labeled[0]), len(scn.unlabeled), len(scn.validation[0]), len(scn.test[0])) == (100, 1097, 200, 400)
    assert (scn.noise, scn.vat_epsilon, scn.input_shape, scn.notes) == (0.15, 1.0, (1, 8, 8), [])
    assert scn.unlabeled.dtype == torch.uint8
    assert torch.bincount(scn.labeled[1]).tolist() == [10] * 10


def test_stratified(official):
    scn = load_scenario("digits", ratio=0)
    share = np.bincount(list(official.values())) / len(official)
    for part in (scn.validation, scn.test):
        assert np.abs(np.bincount(part[1]) - share * len(part[1])).max() <= 1.5


def test_images_are_the_official_ones_and_in_one_part_only(official):
    scn = load_scenario("digits", ratio=0)
    for rows, labels in (scn.labeled, scn.validation, scn.test):
        assert [official[row.tobytes()] for row in rows.numpy()] == labels.tolist()
    parts = [keys(rows) for rows in (scn.labeled[0], scn.validation[0], scn.test[0], scn.unlabeled)]
    assert sum(map(len, parts)) == len(set().union(*parts)) == len(official) == 1797
    assert int(scn.unlabeled.max()) == 255


def test_mean_images_come_from_images_that_were_taken_out(official):
    for ratio, mode in ((0.3, "replace"), (0.5, "add"), (1, "replace")):
        scn = load_scenario("digits", "mean", ratio, mode)
        used = [keys(rows) for rows in (scn.labeled[0], scn.validation[0], scn.test[0], scn.unlabeled[~scn._is_ood])]
        taken = [key for key in official if not any(key in part for part in used)]
        images = np.stack([np.frombuffer(key, np.uint8) for key in taken]).astype(np.int64)
        labels = np.array([official[key] for key in taken])
        for mean in scn.unlabeled[scn._is_ood].numpy().reshape(-1, 64)[:40].astype(np.int64):
            # Every original has a partner 2·mean − a (+ 0 or 1 per pixel) among the taken ones, of another class.
            rest = 2 * mean - images
            found = False
            for a in np.flatnonzero((rest >= -1).all(axis=1) & (rest <= 255).all(axis=1)):
                gap = images - rest[a]
                partners = np.flatnonzero(((gap == 0) | (gap == 1)).all(axis=1))
                found |= bool((labels[partners] != labels[a]).any())
            assert found


def test_classes(official):
    scn = load_scenario("digits", "classes", 0.5)
    assert (len(scn.labeled[0]), len(scn.unlabeled), len(scn.validation[0]), len(scn.test[0])) == (60, 423, 200, 400)
    assert scn.classes.tolist() == [0, 1, 2, 3, 4, 5]
    truth = [official[row.tobytes()] >= 6 for row in scn.unlabeled.numpy()]
    assert truth == scn._is_ood.tolist()
    assert {official[row.tobytes()] for row in scn.unlabeled.numpy()} == set(range(10))


def test_patches_have_texture_and_are_distinct():
    patches = photo_patches()
    assert len(patches) == len(keys(patches)) > 1097
    assert patches.std(axis=(1, 2, 3)).min() > 7
    assert np.ptp(patches.mean(axis=(1, 2, 3))) > 150  # contrast is kept, nothing is normalised
    scn = load_scenario("digits", "patches", 0.5)
    assert keys(scn.unlabeled[scn._is_ood]) <= keys(patches)
    assert not keys(scn.unlabeled[~scn._is_ood]) & keys(patches)


def test_mixed_is_half_patches():
    scn = load_scenario("digits", "mixed", 0.5)
    assert len(keys(scn.unlabeled[scn._is_ood]) & keys(photo_patches())) == 274


def test_largest_ratio_is_named():
    with pytest.raises(DataError, match=r"use a ratio of at most 0\.8"):
        load_scenario("digits", "patches", 0.95, "add")
    with pytest.raises(DataError, match="use a larger ratio, or 0"):
        load_scenario("digits", "mean", 0.001)
