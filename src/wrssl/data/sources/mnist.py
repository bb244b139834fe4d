"""MNIST with foreign images from Fashion-MNIST, EMNIST letters, or means of two digits (the paper's protocol).

60,000 training images: 10,000 held out for validation and 50,000 for training, of which 10 per class are labeled
and 49,900 can be in the pool; 10,000 test images. Kinds of foreign images:

* ``fashion``: Fashion-MNIST's training images (far away);
* ``emnist``: EMNIST letters' training images, turned upright (boundary);
* ``mean``: the mean of two training digits of different classes that were taken out of the pool (boundary);
* ``mixed``: half ``fashion``, half ``emnist``.

Files are in torchvision's layout: ``MNIST/raw``, ``FashionMNIST/raw``, ``EMNIST/raw``, plain or gzipped.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from wrssl.data.download import EMNIST_ARCHIVE, FASHION, MNIST, Address, fetch_first, locate, take_from_zip
from wrssl.data.pairs import mean_of_taken
from wrssl.data.readers.idx import read_idx
from wrssl.data.source import Array, Foreign, LabeledArrays, Parts, Request, stored
from wrssl.data.splits import divide, random_order, without_copies
from wrssl.data.streams import numpy_stream
from wrssl.errors import DataError
from wrssl.registry import register_source

_LABELS, _VALIDATION_SHARE = 10, 6
_LETTERS = tuple(
    f"emnist-letters-{part}-{what}-ubyte.gz" for part in ("train", "test") for what in ("images-idx3", "labels-idx1")
)


def find(request: Request) -> list[Path]:
    """The files that ``request.ood`` needs."""
    folder = request.data_dir / "MNIST" / "raw"
    found = [
        _idx(folder, f"{part}-{what}-ubyte.gz", MNIST, request.download)
        for part in ("t10k", "train")
        for what in ("images-idx3", "labels-idx1")
    ]
    if request.ood in ("fashion", "mixed"):
        found.append(_fashion_file(request))
    if request.ood in ("emnist", "mixed"):
        found.append(_letters_file(request))
    return found


@register_source("mnist", kinds=("fashion", "emnist", "mean", "mixed"), find=find)
def load(request: Request) -> Parts:
    """The digits, and the foreign images that ``request.ood`` names."""
    test = _digits("t10k", request)
    rows, labels = _digits("train", request)
    fresh = without_copies(rows, test[0])
    rows, labels = rows[fresh], labels[fresh]
    held = len(rows) // _VALIDATION_SHARE
    order = random_order(labels, held, request.seed, "mnist split")
    labeled, validation, pool = divide(rows[order], labels[order], held, _LABELS, request)
    makers = {
        "fashion": (_fashion,),
        "emnist": (_emnist,),
        "mixed": (_fashion, _emnist),
        "mean": (lambda request, barred: mean_of_taken(request.seed),),
    }
    barred = np.concatenate([rows, test[0]])
    return Parts(
        labeled=labeled,
        pool=pool[0],
        pool_labels=pool[1],
        validation=validation,
        test=test,
        foreign=tuple(make(request, barred) for make in makers[request.ood]),
        noise=0.15,
        augment="shapes",
        vat_epsilon=3.0,
    )


def _digits(part: str, request: Request) -> LabeledArrays:
    folder = request.data_dir / "MNIST" / "raw"
    images = _images(_idx(folder, f"{part}-images-idx3-ubyte.gz", MNIST, request.download))
    labels = read_idx(_idx(folder, f"{part}-labels-idx1-ubyte.gz", MNIST, request.download))
    if labels.shape != (len(images),):
        raise DataError(f"{folder} holds {len(images)} {part} images and labels {labels.shape}; fetch the files again.")
    return images, labels.astype(np.int64)


def _fashion_file(request: Request) -> Path:
    folder = request.data_dir / "FashionMNIST" / "raw"
    return _idx(folder, "train-images-idx3-ubyte.gz", FASHION, request.download)


def _fashion(request: Request, barred: Array) -> Foreign:
    images = _images(_fashion_file(request))
    return _foreign("fashion", images, barred, request.seed)


def _letters_file(request: Request) -> Path:
    folder = request.data_dir / "EMNIST" / "raw"
    path = folder / _LETTERS[0]
    if request.download and not any(place.exists() for place in _places(path)):
        archive = fetch_first(EMNIST_ARCHIVE, folder / "gzip.zip")
        take_from_zip(archive, {f"gzip/{name}": folder / name for name in _LETTERS})
        archive.unlink()  # 0.5 GB, and everything needed has been taken out
    return locate(_places(path), EMNIST_ARCHIVE, path, download=False)


def _emnist(request: Request, barred: Array) -> Foreign:
    images = _images(_letters_file(request))
    # The official files store every image transposed; rows and columns are exchanged back.
    return _foreign("emnist", images.transpose(0, 1, 3, 2), barred, request.seed)


def _foreign(name: str, images: Array, barred: Array, seed: int) -> Foreign:
    images = images[numpy_stream(seed, f"mnist {name}").permutation(len(images))]
    return stored(name, images[without_copies(images, barred)])


def _places(path: Path) -> list[Path]:
    return [path.with_suffix(""), path]  # torchvision leaves both, and the unpacked one is faster to read


def _idx(folder: Path, name: str, files: dict[str, Address], download: bool) -> Path:
    path = folder / name
    return locate(_places(path), files[name], path, download)


def _images(path: Path) -> Array:
    images = read_idx(path)
    if images.ndim != 3 or images.shape[1:] != (28, 28) or images.dtype != np.uint8:
        raise DataError(f"{path} holds {images.dtype} of shape {images.shape}, not 28x28 images; fetch it again.")
    return images[:, None]
