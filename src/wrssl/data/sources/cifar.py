"""CIFAR-10 with six animal classes against four vehicle classes, and CIFAR-100 with its first against its last 50.

CIFAR-10: bird, cat, deer, dog, frog, horse are in-distribution; airplane, automobile, ship, truck foreign; 400 labels
per class. CIFAR-100: fine classes 0–49 against 50–99; 40 labels per class. 45,000 training images (27,000 ID and
18,000 foreign; CIFAR-100: half and half), 5,000 for validation (3,000 and 2,500 of ID classes), 10,000 for testing
(6,000 and 5,000). The pool has M0 = min(ID, foreign) images, 18,000 (CIFAR-100: 20,500), so that any ratio is possible.

Looked for in the data folder or its subfolder ``CIFAR10`` / ``CIFAR100``: the official folders or archives, pickled
or binary; for CIFAR-10 then also a folder or archive of image files (``readers/cifar.py``).
"""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

import numpy as np

from wrssl.data.download import CIFAR10, CIFAR100, locate
from wrssl.data.readers.cifar import (
    ARCHIVES,
    FOLDERS,
    IMAGE_ARCHIVE,
    IMAGE_FOLDER,
    read_cifar,
    read_cifar_images,
)
from wrssl.data.source import LabeledArrays, Parts, Request
from wrssl.data.splits import split_classes
from wrssl.registry import register_source

NAMES = np.array(["airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck"])
_ANIMALS = np.array(["bird", "cat", "deer", "dog", "frog", "horse"])
_EPSILON = 6.0


def find(request: Request) -> Path:
    """The folder or archive; the official ones are preferred."""
    name = request.name
    folder = request.data_dir / name.upper()
    files = [*FOLDERS[name], *ARCHIVES[name]]
    if name == "cifar10":
        files += [IMAGE_FOLDER, IMAGE_ARCHIVE]
    places = [base / item for item in files for base in (request.data_dir, folder)]
    address = CIFAR10 if name == "cifar10" else CIFAR100
    return locate(places, address, folder / ARCHIVES[name][0], request.download)


@register_source("cifar100", kinds=("classes",), find=find)
@register_source("cifar10", kinds=("classes",), find=find)  # registered first
def load(request: Request) -> Parts:
    """CIFAR-10 or CIFAR-100, as the request's name says."""
    place = find(request)
    if place.name == IMAGE_ARCHIVE:
        found = place.stat()
        train, test = _archive(place, found.st_mtime_ns, found.st_size)
    elif place.name == IMAGE_FOLDER:
        train, test = read_cifar_images(place, NAMES.tolist())
    else:
        train, test = read_cifar(place, request.name)
    if request.name == "cifar10":
        named = ((train[0], NAMES[train[1]]), (test[0], NAMES[test[1]]))
        return split_classes(*named, _ANIMALS, 400, _EPSILON, "photos", request)
    return split_classes(train, test, np.arange(50), 40, _EPSILON, "photos", request)


@lru_cache(maxsize=1)  # decoding takes a dozen seconds, and the next ratio or seed needs the same images
def _archive(place: Path, changed: int, size: int) -> tuple[LabeledArrays, LabeledArrays]:
    """The parts of an archive that has this time and size; they are never written to, as a scenario copies them."""
    return read_cifar_images(place, NAMES.tolist())
