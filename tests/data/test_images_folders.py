"""Scenarios from folders of images."""

from __future__ import annotations

import inspect
import json
import os
import shutil
import subprocess
import sys
import unicodedata
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from wrssl.data import Scenario
from wrssl.data.images import image_files, reader
from wrssl.errors import DataError, OptionError, WRSSLError


def paint(path: Path, seed: int, mode: str = "RGB", size: tuple[int, int] = (12, 10)) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    pixels = np.random.default_rng(seed).integers(0, 256, (size[1], size[0], 3), dtype=np.uint8)
    Image.fromarray(pixels).convert(mode).save(path)


def fill(root: Path, per_class: int = 20, pool: int = 12, mode: str = "RGB") -> Path:
    for place, label in enumerate(("dog", "cat")):
        for index in range(per_class):
            paint(root / "labeled" / label / f"{index:02d}.png", 100 * place + index, mode)
    for index in range(pool):
        paint(root / "unlabeled" / ("a", "b/c")[index % 2] / f"{index:02d}.png", 1000 + index, mode)
    return root


@pytest.fixture
def folders(tmp_path, monkeypatch) -> Path:
    monkeypatch.setenv("WRSSL_CACHE", str(tmp_path / "cache"))
    return fill(tmp_path / "data")


def load(root: Path, **options) -> Scenario:
    return Scenario.from_folders(root / "labeled", root / "unlabeled", **({"image_size": 8, "jobs": 1} | options))


def same(one: Scenario, two: Scenario) -> bool:
    tensors = [[s.unlabeled, *s.labeled, *(s.validation or ()), *(s.test or ())] for s in (one, two)]
    return len(tensors[0]) == len(tensors[1]) and all(torch.equal(a, b) for a, b in zip(*tensors, strict=True))


def test_the_usual_case(folders):
    scn = load(folders, validation=0.25)
    assert repr(scn) == "Scenario('own images', 40 labeled items, not read yet)"
    assert scn.num_classes == 2  # reads them
    assert repr(scn) == (
        "Scenario('own images', labeled=30, unlabeled=12, validation=10, classes=2, input=(3, 8, 8), truth unknown)"
    )
    assert scn.classes.tolist() == ["cat", "dog"]
    assert scn.labeled[1].tolist() == [0] * 15 + [1] * 15
    assert scn.validation[1].tolist() == [0] * 5 + [1] * 5
    assert scn.labeled[0].dtype == torch.uint8
    assert scn.ids == [f"a/{i:02d}.png" for i in range(0, 12, 2)] + [f"b/c/{i:02d}.png" for i in range(1, 12, 2)]
    assert scn.skipped == []
    assert scn.notes == [
        "10 of the 40 labeled images are held out for validation, chosen by the seed within each class; give a "
        "validation folder to train on more."
    ]
    assert (scn.augment, scn.recipe) == ("signs", None)
    assert load(folders, augment="photos").augment == "photos"


def test_rows_belong_to_their_ids_and_the_reader_reads_the_same(folders):
    scn = load(folders)
    files = image_files(folders / "unlabeled")
    rows, kept, skipped = scn.reader.read(files)
    assert [path.relative_to(folders / "unlabeled").as_posix() for path in kept] == scn.ids
    assert np.array_equal(rows, scn.unlabeled.numpy())
    assert skipped == []
    again = type(scn.reader).from_json(json.loads(json.dumps(scn.reader.to_json())))
    assert again == scn.reader


def test_the_same_arguments_give_the_same_scenario_elsewhere_too(folders, tmp_path):
    scn = load(folders, seed=3, validation=0.3, augment="photos")
    arguments = json.loads(json.dumps(scn.folders))
    again = Scenario.from_folders(**arguments)
    assert same(scn, again)
    assert (again.folders, again.notes, again.augment) == (scn.folders, scn.notes, "photos")
    assert os.path.isabs(arguments["labeled"])
    signature = set(inspect.signature(Scenario.from_folders).parameters)
    assert set(arguments) == signature - {"jobs", "progress"}
    moved = tmp_path / "moved"
    shutil.copytree(folders, moved)
    assert same(scn, load(moved, seed=3, validation=0.3))
    assert not same(scn, load(moved, seed=4, validation=0.3))
    assert Scenario((np.zeros((4, 2)), [0, 1, 0, 1]), np.ones((3, 2))).folders is None


def test_relative_paths_with_a_home(folders, monkeypatch):
    monkeypatch.chdir(folders)
    monkeypatch.setenv("HOME", str(folders))
    scn = Scenario.from_folders("labeled", "~/unlabeled", cache_dir=False)
    assert scn.folders["labeled"] == str(folders / "labeled")
    assert scn.folders["unlabeled"] == str(folders / "unlabeled")
    assert scn.folders["cache_dir"] is False
    assert scn.input_shape == (3, 32, 32)
    assert Scenario.from_folders("labeled", "unlabeled", cache_dir="c").folders["cache_dir"] == str(folders / "c")


def test_threads_and_cache_do_not_change_anything(folders, monkeypatch):
    monkeypatch.setattr("wrssl.data.images.cache._SETTLED", -1)
    plain = load(folders, cache_dir=False)
    assert same(plain, load(folders, jobs=3))
    monkeypatch.setattr(reader, "decode", lambda *_: pytest.fail("decoded again"))
    assert same(plain, load(folders))


def test_bad_files_are_skipped_and_named(folders):
    pool, labeled = folders / "unlabeled", folders / "labeled"
    (pool / "empty.jpg").touch()
    (pool / "text.jpg").write_text("hello")
    (pool / "text2.jpg").write_text("hello")
    (pool / "readme.txt").write_text("hello")
    (labeled / "cat" / "broken.png").write_bytes((labeled / "cat" / "00.png").read_bytes()[:100])
    paint(labeled / "stray.png", 5)
    scn = load(folders)
    assert scn.skipped == [
        ("labeled:cat/broken.png", "truncated file"),
        ("labeled:stray.png", "an image outside of the class folders"),
        ("empty.jpg", "empty file"),
        ("readme.txt", "not an image type that is read (.txt)"),
        ("text.jpg", "not an image, whatever its name says"),
        ("text2.jpg", "not an image, whatever its name says"),
    ]
    assert len(scn.unlabeled) == len(scn.ids) == 12
    assert scn.notes[-1] == (
        "6 files were skipped (not an image, whatever its name says: 2, truncated file: 1, an image outside of the "
        "class folders: 1, …); skipped.csv has names and reasons."
    )
    assert load(folders).skipped == scn.skipped  # from the cache


def test_validation_and_test_folders(folders):
    for part in ("valid", "test"):
        for label in ("cat", "dog"):
            paint(folders / part / label / "deep" / "x.png", 50 + len(label) + len(part))
    (folders / "valid" / "cat" / "broken.jpg").touch()
    scn = load(folders, validation=folders / "valid", test=str(folders / "test"))
    assert scn.labeled[1].tolist() == [0] * 20 + [1] * 20
    assert scn.validation[1].tolist() == scn.test[1].tolist() == [0, 1]
    assert scn.skipped == [("validation:cat/broken.jpg", "empty file")]
    assert scn.folders["validation"] == str(folders / "valid")
    assert same(scn, Scenario.from_folders(**scn.folders))
    shutil.rmtree(folders / "valid" / "cat")
    (folders / "valid" / "cat").mkdir()  # a class may be missing here, and nothing but a missing one may be empty
    assert any("no example of the class 'cat'" in note for note in load(folders, validation=folders / "valid").notes)


def test_shares_for_validation(folders):
    assert load(folders, validation=0).validation is None
    assert load(folders, validation=0).notes == []
    scn = load(folders, validation=0.5)
    assert (len(scn.labeled[0]), len(scn.validation[0])) == (20, 20)
    rows = {row.tobytes() for part in (scn.labeled, scn.validation) for row in part[0].numpy()}
    assert len(rows) == 40


def test_few_labels_are_all_trained_on(tmp_path):
    scn = load(fill(tmp_path, per_class=15), cache_dir=False)
    assert scn.validation is None
    assert scn.notes == [
        "No labeled image is held out for validation, as there are too few different ones (30): the weights are found "
        "by cross-fitting, and nothing chooses between models; 240 of them, evenly spread over the classes, or a "
        "validation folder would change that, and wrssl audit says how good the model is."
    ]
    single = load(fill(tmp_path / "one", per_class=1), cache_dir=False, validation=0.2)
    assert single.validation is None
    assert "4 of them" in single.notes[0]


def test_gray_images_have_one_channel(tmp_path):
    root = fill(tmp_path, per_class=4, pool=3, mode="L")
    for index in range(4):  # gray that is stored as color is gray
        Image.open(root / f"labeled/cat/{index:02d}.png").convert("RGB").save(root / f"labeled/cat/{index:02d}.png")
    tinted = np.random.default_rng(0).integers(0, 250, (10, 12, 1), dtype=np.uint8) + np.array([4, 0, 4], np.uint8)
    Image.fromarray(tinted).save(root / "labeled/dog/tinted.png")  # no more than a lossy format does to gray
    paint(root / "unlabeled" / "z.png", 7)
    scn = load(root, cache_dir=tmp_path / "cache")
    assert scn.input_shape == (1, 8, 8)
    assert scn.reader.channels == 1
    assert scn.augment == "shapes"
    assert "one channel; pass channels=3" in scn.notes[0]
    rows, _, _ = scn.reader.read(image_files(root / "labeled"))
    assert np.array_equal(rows, scn.labeled[0].numpy())  # read with three channels first, and still the same
    assert same(scn, load(root, channels=1, cache_dir=False))
    assert load(root, channels=3, cache_dir=False).input_shape == (3, 8, 8)
    paint(root / "labeled" / "dog" / "color.png", 3)
    assert load(root, cache_dir=tmp_path / "cache").input_shape == (3, 8, 8)


def test_copies_are_notes_and_one_image_with_two_labels_is_named(folders):
    for label, name in (("cat", "unlabeled/copy.png"), ("cat", "labeled/dog/00-copy.png"), ("dog", "test/dog/x.png")):
        (folders / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(folders / "labeled" / label / "00.png", folders / name)
    scn = load(folders, test=folders / "test", validation=0)
    assert scn.notes[0] == (
        "A labeled image is in the folders of two classes (first: cat/00.png and dog/00-copy.png); remove it from the "
        "wrong one."
    )
    assert any("1 row of the test part is also in the labeled part" in note for note in scn.notes)
    assert any("1 row of the unlabeled part is also in the labeled part" in note for note in scn.notes)


def test_held_out_copies_in_the_pool_are_a_note(folders):
    shutil.copytree(folders / "labeled", folders / "unlabeled" / "copies")
    notes = load(folders, validation=0.25).notes
    assert any("10 rows of the unlabeled part are also in the validation part" in note for note in notes)


def test_accents_are_spelt_in_one_way(tmp_path):
    root = fill(tmp_path, per_class=2)
    os.rename(root / "labeled/cat", root / "labeled" / unicodedata.normalize("NFD", "é"))
    paint(root / "valid" / unicodedata.normalize("NFC", "é") / "x.png", 77)
    scn = load(root, validation=root / "valid", cache_dir=False)
    assert scn.classes.tolist() == ["dog", unicodedata.normalize("NFC", "é")]
    assert scn.validation[1].tolist() == [1]


@pytest.mark.skipif(sys.platform != "linux", reason="other systems refuse such names")
def test_strange_names_reach_ids_and_classes(folders):
    os.rename(os.fsencode(folders / "labeled/cat"), os.fsencode(folders / "labeled") + b"/c\xff")
    for index, name in enumerate([b"new\nline.png", b"<script>.png", b"bad\xfe.png"]):
        paint(folders / "x.png", index)
        os.rename(os.fsencode(folders / "x.png"), os.fsencode(folders / "unlabeled") + b"/" + name)
    for scn in (load(folders), load(folders)):
        assert {"new\nline.png", "<script>.png", "bad\\udcfe.png"} < set(scn.ids)
        assert scn.classes.tolist() == ["c\\udcff", "dog"]
        "".join([*scn.ids, *scn.classes.tolist()]).encode("utf-8")


def test_a_cache_that_cannot_be_written_is_a_note(folders):
    (folders / "cache").write_text("in the way")
    scn = load(folders, cache_dir=folders / "cache")
    where = folders / "cache"
    assert scn.notes[-1].startswith(f"The decoded images are in memory only, as {where} cannot be written (")
    assert same(scn, load(folders, cache_dir=False))


def breakage(root: Path, name: str) -> dict:
    """Spoil the folders; what to pass instead of the usual arguments."""
    labeled, pool = root / "labeled", root / "unlabeled"
    if name == "one class":
        shutil.rmtree(labeled / "cat")
    elif name == "empty class":
        (labeled / "horse").mkdir()
    elif name == "unreadable class":
        (labeled / "horse").mkdir()
        (labeled / "horse" / "a.png").touch()
    elif name == "flat":
        shutil.rmtree(labeled)
        paint(labeled / "a.png", 1)
    elif name == "empty pool":
        shutil.rmtree(pool)
        pool.mkdir()
    elif name == "pool of texts":
        shutil.rmtree(pool)
        pool.mkdir()
        (pool / "a.txt").write_text("a")
    elif name == "unreadable pool":
        shutil.rmtree(pool)
        pool.mkdir()
        (pool / "a.png").touch()
    elif name == "unknown class":
        paint(root / "valid" / "bird" / "a.png", 1)
        return {"validation": root / "valid"}
    elif name == "linked":
        os.symlink(labeled, root / "link")
        return {"unlabeled": root / "link"}
    elif name == "pool inside":
        return {"unlabeled": labeled / "cat"}
    elif name == "labels inside":
        return {"labeled": root}
    elif name == "file":
        return {"labeled": labeled / "cat" / "00.png"}
    elif name == "missing":
        return {"unlabeled": root / "nowhere"}
    elif name == "test is pool":
        return {"test": pool}
    return {}


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("one class", r"The labeled folder \S+ has only the class 'dog'; give images of at least two classes"),
        ("empty class", r"The labeled folder \S+ has no image of the class 'horse'; put some there or remove the sub"),
        ("unreadable class", r"No image of the class 'horse' can be read \(first: horse/a.png, empty file\); put good"),
        ("flat", r"The labeled folder \S+ has no sub-folder with images; make one sub-folder per class"),
        ("empty pool", r"The unlabeled folder \S+ holds no image; put .jpg"),
        ("pool of texts", r"holds no image that can be read \(a.txt: not an image type that is read \(.txt\)\); put"),
        ("unreadable pool", r"No image in the unlabeled folder \S+ can be read \(first: a.png, empty file\); put"),
        ("unknown class", r"validation folder \S+ has the class 'bird', which the labeled .* \(cat, dog\); rename"),
        ("linked", r"The unlabeled folder \S+ is the labeled folder too; give each part its own"),
        ("pool inside", r"The unlabeled folder \S+ is inside the labeled folder; move it out"),
        ("labels inside", r"The unlabeled folder \S+ is inside the labeled folder; move it out"),
        ("file", r"The labeled folder \S+00.png is a file; name the folder that holds the images"),
        ("missing", r"The unlabeled folder \S+nowhere does not exist; check the path"),
        ("test is pool", r"The test folder \S+ is the unlabeled folder too"),
    ],
)
def test_folders_that_cannot_be_used(tmp_path, name, message):
    root = fill(tmp_path, per_class=2, pool=2)
    given = {"labeled": root / "labeled", "unlabeled": root / "unlabeled"} | breakage(root, name)
    with pytest.raises(DataError, match=message) as caught:
        Scenario.from_folders(**given, image_size=8, cache_dir=False).labeled  # noqa: B018  (reads the files)
    assert str(caught.value).endswith(".")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "wrong",
    [
        *({"channels": 2}, {"channels": True}, {"image_size": 0}, {"seed": -1}, {"jobs": 0}, {"max_pixels": 0}),
        *({"test": 3}, {"validation": 1.5}, {"validation": True}, {"validation": ""}, {"augment": "table"}),
    ],
    ids=str,
)
def test_options_that_cannot_be_used(folders, wrong):
    with pytest.raises(OptionError, match=next(iter(wrong))) as caught:
        load(folders, **wrong)
    assert isinstance(caught.value, WRSSLError)


def test_pillow_and_scikit_learn_are_loaded_when_they_are_needed():
    code = "import sys, wrssl.data; sys.exit(bool({'PIL', 'sklearn', 'pandas', 'scipy'} & {*sys.modules}))"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


@pytest.mark.data
def test_real_photographs(real_data, tmp_path):
    import tarfile

    with tarfile.open(real_data / "CIFAR10" / "cifar10-images.tar.xz") as archive:
        for member, _ in zip((m for m in archive if m.name.endswith(".jpg")), range(60), strict=False):
            number = int(Path(member.name).stem)
            place = "unlabeled" if number >= 20 else f"labeled/{'even' if number % 2 else 'odd'}"
            (tmp_path / place).mkdir(parents=True, exist_ok=True)
            (tmp_path / place / f"{number}.jpg").write_bytes(archive.extractfile(member).read())
    scn = Scenario.from_folders(tmp_path / "labeled", tmp_path / "unlabeled", cache_dir=tmp_path / "cache")
    assert (len(scn.labeled[0]), len(scn.unlabeled), scn.skipped) == (20, 40, [])
    with Image.open(tmp_path / "unlabeled" / scn.ids[0]) as image:
        assert np.array_equal(np.asarray(image).transpose(2, 0, 1), scn.unlabeled[0].numpy())
