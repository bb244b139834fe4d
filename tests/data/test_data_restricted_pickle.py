from __future__ import annotations

import os
import pickle
import struct

import numpy as np
import pytest

from wrssl.data.readers.restricted_pickle import read_pickle
from wrssl.errors import DataError


@pytest.mark.parametrize("protocol", range(6))
@pytest.mark.parametrize("kind", ["u1", "<i4", ">i4", "f8", "?"])
def test_plain_values_and_arrays_come_back(protocol, kind):
    array = np.arange(12).reshape(3, 4).astype(kind)
    content = {"data": array, "turned": array.T, b"raw": b"\x00\xff", "labels": [1, 2], "name": "täst", "empty": b""}
    got = read_pickle(pickle.dumps(content, protocol), "x")
    assert np.array_equal(got["data"], array)
    assert got["data"].dtype == array.dtype
    assert np.array_equal(got["turned"], array.T)
    assert (got["raw"], got["labels"], got["name"], got["empty"]) == (b"\x00\xff", [1, 2], "täst", b"")


def test_a_pickle_written_by_python_2():
    # As the official CIFAR files: protocol 2, byte strings as keys and as array contents.
    dtype = b"cnumpy\ndtype\nU\x02u1K\x00K\x01\x87R(K\x03U\x01|NNNJ\xff\xff\xff\xffJ\xff\xff\xff\xffK\x00tb"
    array = b"cnumpy.core.multiarray\n_reconstruct\ncnumpy\nndarray\nK\x00\x85U\x01b\x87R"
    state = b"(K\x01K\x02\x85" + dtype + b"\x89U\x02\x07\x09tb"
    data = b"\x80\x02}U\x04data" + array + state + b"s."
    assert read_pickle(data, "x")["data"].tolist() == [7, 9]


class _Evil:
    def __init__(self, function, *args):
        self.call = (function, args)

    def __reduce__(self):
        return self.call


@pytest.mark.parametrize("protocol", range(6))
def test_a_malicious_pickle_is_refused_by_name_and_not_run(tmp_path, protocol):
    mark = tmp_path / "owned"
    data = pickle.dumps({"data": _Evil(os.system, f"touch {mark}")}, protocol)
    with pytest.raises(DataError, match=r"the name (posix|nt)\.system, which is refused"):
        read_pickle(data, "x")
    assert not mark.exists()


@pytest.mark.parametrize(
    "what", [b"cbuiltins\neval\n", b"cnumpy\nload\n", b"cfunctools\npartial\n", b"cnumpy\nfrombuffer\n"]
)
def test_other_names_are_refused(what):
    with pytest.raises(DataError, match="refused as unsafe"):
        read_pickle(b"\x80\x02}U\x01a" + what + b"s.", "x")


def test_claims_that_do_not_fit_are_refused_before_memory_is_asked_for():
    huge = pickle.dumps({"data": np.zeros(4, np.uint8)}, 2).replace(b"K\x04\x85", b"J\xff\xff\xff\x7f\x85")
    with pytest.raises(DataError, match="array of shape"):
        read_pickle(huge, "x")
    with pytest.raises(DataError, match="bytes of a given length"):
        read_pickle(b"\x80\x02}U\x01acbuiltins\nbytes\nJ\xff\xff\xff\x7f\x85Rs.", "x")
    with pytest.raises(DataError, match="number type"):
        read_pickle(pickle.dumps({"data": np.array([object], dtype=object)[:0]}, 2), "x")
    with pytest.raises(DataError, match="number type"):
        read_pickle(pickle.dumps({"data": np.zeros(2, dtype=[("a", "u1")])}, 2), "x")
    with pytest.raises(DataError, match="the encoding"):
        read_pickle(b"\x80\x02}U\x01ac_codecs\nencode\nX\x01\x00\x00\x00aX\x03\x00\x00\x00zip\x86Rs.", "x")


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"junk",
        b"\x80\x05",
        pickle.dumps([1]),
        b"\x80\x04\x8e" + struct.pack("<Q", 1 << 60) + b".",
        b"cnumpy\ndtype\n}b.",
    ],
)
def test_damaged_pickles_are_data_errors(data):
    with pytest.raises(DataError, match="x "):
        read_pickle(data, "x")


def test_states_on_inert_objects_change_nothing():
    # BUILD with attribute assignments on a class or an instance must not reach through.
    attack = b"\x80\x02cnumpy\ndtype\n(N}U\x05valueK\x01stb."
    with pytest.raises(DataError):
        read_pickle(attack, "x")
    assert read_pickle(pickle.dumps({"data": np.arange(3)}), "x")["data"].tolist() == [0, 1, 2]
