"""Official addresses of the public data sets, with the checksums of the files there."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Address:
    """Where one file can be fetched.

    Attributes:
        urls: the official address first, then mirrors.
        md5: checksum of the file. The publishers and common loaders give MD5; it guards against damage.
    """

    urls: tuple[str, ...]
    md5: str


def _files(bases: tuple[str, ...], checksums: dict[str, str]) -> dict[str, Address]:
    return {name: Address(tuple(base + name for base in bases), md5) for name, md5 in checksums.items()}


MNIST = _files(
    ("http://yann.lecun.com/exdb/mnist/", "https://ossci-datasets.s3.amazonaws.com/mnist/"),
    {
        "train-images-idx3-ubyte.gz": "f68b3c2dcbeaaa9fbdd348bbdeb94873",
        "train-labels-idx1-ubyte.gz": "d53e105ee54ea40749a09fcbcd1e9432",
        "t10k-images-idx3-ubyte.gz": "9fb629c4189551a2d022fa330f9573f3",
        "t10k-labels-idx1-ubyte.gz": "ec29112dd5afa0611ce80d1b7f02629c",
    },
)

FASHION = _files(
    ("http://fashion-mnist.s3-website.eu-central-1.amazonaws.com/",),
    {
        "train-images-idx3-ubyte.gz": "8d4fb7e6c68d591d4c3dfef9ec88bf0d",
        "train-labels-idx1-ubyte.gz": "25c81989df183df01b3e8a0aad5dffbe",
        "t10k-images-idx3-ubyte.gz": "bef4ecab320f06d8554ea6380940ec79",
        "t10k-labels-idx1-ubyte.gz": "bb300cfdad3c16e7a12a480ee83cd310",
    },
)

# One archive with all splits of EMNIST; only the letters are taken out of it.
EMNIST_ARCHIVE = Address(
    (
        "https://biometrics.nist.gov/cs_links/EMNIST/gzip.zip",
        "https://www.itl.nist.gov/iaui/vip/cs_links/EMNIST/gzip.zip",
    ),
    "58c8d27c78d21e728a6bc7b3cc06412e",
)

CIFAR10 = Address(("https://www.cs.toronto.edu/~kriz/cifar-10-python.tar.gz",), "c58f30108f718f92721af3b95e74349a")
CIFAR100 = Address(("https://www.cs.toronto.edu/~kriz/cifar-100-python.tar.gz",), "eb9058c3a382ffc7106e4002c42a8d85")

SVHN = _files(
    ("http://ufldl.stanford.edu/housenumbers/",),
    {
        "train_32x32.mat": "e26dedcc434d2e4c54c9b2d4a06d8373",
        "test_32x32.mat": "eb5a983be6a315427106f1b164d9cef3",
        "extra_32x32.mat": "a93ce644f1a588dc4d68dda5feec44a7",
    },
)
