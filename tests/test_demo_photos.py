"""The demo's photographs: which ones are drawn for what, and that only the known file is opened."""

from __future__ import annotations

import hashlib
from collections import Counter

import numpy as np
import pytest

from wrssl import demo_photos
from wrssl.demo_photos import Photo, packaged_photos, photo_task
from wrssl.errors import DataError, OptionError

KINDS = {("Apple", "Royal-Gala"): 9, ("Pear", "Anjou"): 8, ("Orange", "Orange"): 4, ("Melon", "Galia-Melon"): 3}


@pytest.fixture
def photos():
    """Of each variety as many as ``KINDS`` says, in every part; the bytes say which one it is."""
    return [
        Photo(part, kind, variety, f"{part} {kind} {variety} {number}".encode())
        for part in ("train", "val", "test")
        for (kind, variety), count in KINDS.items()
        for number in range(count)
    ]


@pytest.fixture
def installed(tmp_path, monkeypatch):
    """A function that installs a package with one file of given bytes instead of the real one."""

    def install(content):
        file = tmp_path / "fruit_of_a_test" / demo_photos.FILE
        file.parent.mkdir(parents=True)
        file.write_bytes(content)
        (file.parents[1] / "__init__.py").write_text("raise RuntimeError('imported')")
        monkeypatch.syspath_prepend(tmp_path)
        monkeypatch.setattr(demo_photos, "PACKAGE", "fruit_of_a_test")
        monkeypatch.setattr(demo_photos, "CONTENT", hashlib.sha256(content).hexdigest())
        return file

    return install


@pytest.fixture(scope="module")
def real_photos():
    pytest.importorskip("pyarrow", reason="the extra 'demo' is not installed")
    try:
        return packaged_photos()
    except OptionError as error:
        pytest.skip(str(error))


def contents(paths):
    return [path.read_bytes().decode() for path in paths]


def test_the_parts_of_the_task_share_no_photograph_and_the_test_part_stays_apart(photos, tmp_path):
    task = photo_task(photos, tmp_path, 0, labels_per_class=2)
    labeled, pool, test = contents(task.labeled), contents(task.pool), contents(task.test)
    assert len({*labeled, *pool, *test}) == len(labeled) + len(pool) + len(test)
    assert len(labeled) == 4
    assert len(test) == 9 + 8, "all apples and pears of the test part"
    assert {text.split()[0] for text in [*labeled, *pool]} == {"train", "val"}
    assert {text.split()[0] for text in test} == {"test"}


def test_half_of_the_pool_is_foreign_and_the_truth_says_which_half(photos, tmp_path):
    task = photo_task(photos, tmp_path, 0, labels_per_class=2)
    kinds = [text.split()[1] for text in contents(task.pool)]
    assert Counter(kinds) == {"Orange": 8, "Melon": 6} | {k: kinds.count(k) for k in ("Apple", "Pear")}
    assert len(kinds) == 2 * (8 + 6)
    assert task.is_foreign.tolist() == [kind in ("Orange", "Melon") for kind in kinds]
    assert {name.split("-")[0] for name, out in zip(task.pool_names, task.is_foreign, strict=True) if out} == {
        "orange",
        "melon",
    }
    first = task.is_foreign[: len(kinds) // 2]
    assert first.any()
    assert not first.all(), "the foreign ones are not all at one end"


def test_where_own_photographs_are_fewer_the_pool_has_as_many_foreign_ones(photos, tmp_path):
    task = photo_task(photos, tmp_path, 0, labels_per_class=14)  # leaves 18 − 14 apples and 16 − 14 pears
    assert len(task.pool) == 2 * (4 + 2)
    assert task.is_foreign.sum() == 4 + 2


def test_labels_point_at_the_names_of_what_the_photographs_show(photos, tmp_path):
    task = photo_task(photos, tmp_path, 0, labels_per_class=2)
    assert task.classes == ("apple-royal-gala", "pear-anjou")
    for paths, labels in ((task.labeled, task.labels), (task.test, task.test_labels)):
        assert labels.dtype == np.int64
        for path, text, label in zip(paths, contents(paths), labels, strict=True):
            assert path.parent.name == task.classes[label]
            assert "-".join(text.split()[1:3]).lower() == task.classes[label]
    assert np.bincount(task.labels).tolist() == [2, 2]


def test_the_seed_decides_the_draw(photos, tmp_path):
    tasks = [photo_task(photos, tmp_path / str(run), seed, 2) for run, seed in enumerate((5, 5, 6))]
    drawn = [(contents(task.labeled), contents(task.pool), contents(task.test)) for task in tasks]
    assert drawn[0] == drawn[1]
    assert drawn[0][0] != drawn[2][0]
    assert drawn[0][1] != drawn[2][1]


def test_more_labels_than_photographs_are_an_error(photos, tmp_path):
    with pytest.raises(OptionError, match="too few photographs for 17 labels per class; ask for fewer"):
        photo_task(photos, tmp_path, 0, labels_per_class=17)  # 16 pears outside the test part
    assert list(tmp_path.iterdir()) == []


def test_a_missing_package_is_an_error_that_says_how_to_install_it(monkeypatch):
    monkeypatch.setattr(demo_photos, "PACKAGE", "no_such_package_here")
    with pytest.raises(OptionError, match=r"install them with: pip install \"wrssl\[demo\]\""):
        packaged_photos()


def test_a_file_with_another_content_is_not_opened(installed):
    file = installed(b"PAR1")
    file.write_bytes(b"PAR1 and more")
    with pytest.raises(DataError, match="not the file that this version knows"):
        packaged_photos()


def test_each_photograph_of_the_file_is_read_once_and_the_package_is_not_imported(installed, tmp_path):
    pytest.importorskip("pyarrow", reason="the extra 'demo' is not installed")
    import pandas as pd

    rows = [
        ("train", "Apple", "Pink-Lady", b"a"),
        ("test", "Orange", "Orange", b"b"),
        ("test", "Orange", "Orange", b"b"),
    ]
    made = tmp_path / "made.parquet"
    pd.DataFrame(rows, columns=["dataset", "coarse_cat", "finegrained_cat", "image_data"]).to_parquet(made)
    installed(made.read_bytes())
    found = packaged_photos()
    assert found == rows[:2]
    assert [photo.name for photo in found] == ["apple-pink-lady", "orange"]


def test_the_installed_package_holds_the_photographs_of_the_data_set(real_photos):
    assert Counter(photo.part for photo in real_photos) == {"train": 675, "test": 661, "val": 57}
    assert {photo.kind for photo in real_photos} == {"Apple", "Pear", "Melon", "Orange", "Satsumas"}
    assert all(photo.jpeg.startswith(b"\xff\xd8\xff") for photo in real_photos)


def test_the_task_of_the_demo(real_photos, tmp_path):
    task = photo_task(real_photos, tmp_path, 0)
    assert len(task.classes) == 8
    assert np.bincount(task.labels).tolist() == [5] * 8
    assert (len(task.pool), int(task.is_foreign.sum()), len(task.test)) == (622, 311, 384)
