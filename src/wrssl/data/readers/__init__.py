"""Readers of the official file formats; they check what a header claims before they rely on it."""

from __future__ import annotations

from wrssl.data.readers.cifar import read_cifar, read_cifar_images
from wrssl.data.readers.idx import read_idx
from wrssl.data.readers.restricted_pickle import read_pickle
from wrssl.data.readers.svhn import read_svhn

__all__ = ["read_cifar", "read_cifar_images", "read_idx", "read_pickle", "read_svhn"]
