"""Embedders on a device: a copy that gives the same rows, under the same fingerprint, and the module inside."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn

from wrssl.api import OptionError
from wrssl.embedding import embed, embed_items, find_embedder, photos
from wrssl.embedding.photos import TorchLite

CLOSE = {"rtol": 1e-3, "atol": 1e-4}
META = "meta"  # a device that every torch has; tensors there have shapes and no numbers


@pytest.fixture(scope="module")
def lite0():
    pytest.importorskip("onnx", reason="the extra 'photos' is not installed")
    try:
        return find_embedder("lite0")
    except OptionError as error:
        pytest.skip(str(error))


class Means(nn.Module):
    """The mean of each color, times a parameter."""

    def __init__(self):
        super().__init__()
        self.factor = nn.Parameter(torch.tensor(3.0))

    def forward(self, x):
        return self.factor * x.mean((2, 3))


@pytest.mark.parametrize("name", ["lite0", "lite1", "lite2"])
def test_rows_in_torch_are_those_of_onnx(name, pictures, photo_files, cache):
    try:
        by_onnx = find_embedder(name)
    except OptionError as error:
        pytest.skip(str(error))
    from PIL import Image

    items = [*pictures, *(np.asarray(Image.open(path).convert("RGB")) for path in photo_files)]
    assert {min(item.shape[:2]) >= photos.FROM for item in items} == {True, False}  # both sizes of the network
    by_torch = TorchLite(name, "cpu")
    assert (by_torch.fingerprint, by_torch.kind, by_torch.dim, by_torch.side) == (
        by_onnx.fingerprint, by_onnx.kind, by_onnx.dim, by_onnx.side,
    )  # fmt: skip
    assert by_torch.batch > by_onnx.batch
    np.testing.assert_allclose(by_torch.rows(items), by_onnx.rows(items), **CLOSE)


def test_rows_in_torch_and_in_onnx_share_the_cache(lite0, photo_files, cache):
    first = embed_items(photo_files, TorchLite("lite0", "cpu"), cache=cache, jobs=3)
    again = embed_items(photo_files, lite0, cache=cache)
    assert (first.computed, again.computed) == (len(photo_files), 0)
    assert np.array_equal(first.rows[0], again.rows[0])


def test_lite_on_a_device_is_its_torch_form_and_on_the_cpu_itself(lite0):
    assert lite0.on("cpu") is lite0
    moved = lite0.on(META)
    assert isinstance(moved, TorchLite)
    assert moved.fingerprint == lite0.fingerprint
    assert moved.wish == lite0.wish == "lite0"
    assert moved.on(META) is moved
    assert moved.torch_module()._conv_stem.weight.device.type == META
    back = moved.on("cpu")
    assert type(back) is type(lite0)
    assert back.wish == "lite0"


def test_joined_embedders_move_part_by_part(lite0):
    both = find_embedder("lite0+lite0")
    moved = both.on(META)
    assert [type(part) for part in moved.parts] == [TorchLite, TorchLite]
    assert moved.fingerprint == both.fingerprint
    assert moved.wish == "lite0+lite0"
    assert [type(part) for part in both.parts] == [type(lite0), type(lite0)]


def test_a_module_of_the_user_is_copied_and_not_moved(cache):
    module = Means()
    embedder = find_embedder(module)
    moved = embedder.on(META)
    assert moved.module.factor.device.type == META
    assert embedder.module is module
    assert module.factor.device.type == "cpu"
    assert (moved.fingerprint, moved.dim, moved.kind) == (embedder.fingerprint, embedder.dim, embedder.kind)
    assert moved.batch > embedder.batch
    assert embedder.on("cpu") is embedder
    white = [np.full((30, 30, 3), 255, np.uint8)]
    assert np.allclose(embed(white, embedder), 3, atol=1e-2)


def devices_seen(embedder, items):
    """Where the tensors are that the module of an embedder on the meta device is given."""
    seen = []

    def note(module, given, named):
        seen.extend(value.device.type for value in (*given, *named.values()) if isinstance(value, torch.Tensor))

    embedder.module.register_forward_pre_hook(note, with_kwargs=True)
    with pytest.raises((NotImplementedError, RuntimeError), match="meta tensor"):  # rows without numbers
        embedder.rows(items)
    return seen


def test_pictures_go_where_the_module_is():
    assert devices_seen(find_embedder(Means()).on(META), [np.zeros((30, 30, 3), np.uint8)]) == [META]


def test_the_module_inside_is_the_callers_to_change(lite0, pictures, cache):
    module = Means()
    embedder = find_embedder(module)
    inside = embedder.torch_module()
    inside.factor.data.zero_()
    assert module.factor.item() == 3
    before = lite0.rows(pictures[:2])
    network = lite0.torch_module()
    assert network is not lite0.torch_module()
    assert isinstance(network._blocks[-1], nn.Module)  # what fine-tuning of the last blocks takes
    for parameter in network.parameters():
        parameter.data.zero_()
    assert np.array_equal(lite0.rows(pictures[:2]), before)


def test_embedders_without_a_torch_form_stay_as_they_are(tiles, letters):
    def brightness(items):
        return np.array([[item.mean()] for item in items])

    for embedder in (tiles, letters, find_embedder(brightness)):
        assert embedder.on("cuda") is embedder
        assert embedder.torch_module() is None


def test_texts_by_onnx_stay_as_they_are():
    try:
        minilm = find_embedder("minilm")
    except OptionError as error:
        pytest.skip(str(error))
    assert minilm.on("cuda") is minilm


@pytest.mark.parametrize("device", ["nonsense", "cuda:99"])
def test_a_device_that_is_not_there_is_one_sentence(device, lite0):
    for embedder in (lite0, find_embedder(Means())):
        with pytest.raises(OptionError, match=f"Device '{device}' is not available; take 'cpu'"):
            embedder.on(device)


def test_a_model_of_transformers_moves_as_a_copy(tiny_bert, cache):
    embedder = find_embedder(f"hf:{tiny_bert}")
    before = embedder.rows(["money", "cat"])
    moved = embedder.on(META)
    assert next(moved.module.parameters()).device.type == META
    assert moved.fingerprint == embedder.fingerprint
    assert np.array_equal(embedder.rows(["money", "cat"]), before)
    assert set(devices_seen(moved, ["money"])) == {META}
