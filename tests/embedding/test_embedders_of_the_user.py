"""Modules, functions and models of transformers as embedders."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn

from wrssl.api import DataError, OptionError
from wrssl.embedding import embed, find_embedder


class Means(nn.Module):
    """The mean of each color, times a parameter; in training mode something else."""

    def __init__(self, factor=1.0):
        super().__init__()
        self.factor = nn.Parameter(torch.tensor(factor))

    def forward(self, x):
        return self.factor * x.mean((2, 3)) + (100 if self.training else 0)


def test_a_module_is_used_in_evaluation_mode_and_left_as_it_was(cache):
    module = Means().train()
    rows = embed([np.full((30, 30, 3), 255, np.uint8)], module)
    assert np.allclose(rows, 1, atol=1e-3)
    assert module.training
    assert module.factor.grad is None


def test_other_weights_have_other_rows_in_the_cache(cache):
    white = [np.full((30, 30, 3), 255, np.uint8)]
    assert np.allclose(embed(white, Means(1.0)), 1, atol=1e-3)
    assert np.allclose(embed(white, Means(2.0)), 2, atol=1e-3)


def test_feature_maps_are_averaged_over_positions(cache):
    rows = embed([np.full((30, 30, 3), 255, np.uint8)], nn.AvgPool2d(16))
    assert rows.shape == (1, 3)
    assert np.allclose(rows, 1, atol=1e-3)


def test_a_function_of_pictures_and_one_of_texts(cache):
    def brightness(items):
        return np.array([[item.mean() / 255] for item in items])

    assert np.allclose(embed([np.full((3, 3), 51, np.uint8)], brightness), 0.2, atol=1e-3)

    def length(items):
        return np.array([[len(item)] for item in items], float)

    length.kind = "text"
    assert embed(["abc", ""], length).tolist() == [[3], [0]]


def test_functions_that_close_over_different_values_are_told_apart(cache):
    def make(factor):
        def scaled(items):
            return np.array([[factor * item.mean()] for item in items])

        return scaled

    white = [np.full((3, 3), 2, np.uint8)]
    assert [embed(white, make(k))[0, 0] for k in (1, 3)] == [2, 6]


@pytest.mark.parametrize("wish", [5, np.zeros((3, 4)), None])
def test_what_is_no_embedder_is_one_sentence(wish):
    with pytest.raises(OptionError, match="An embedder is a name"):
        find_embedder(wish)


def test_a_function_with_flat_output_is_refused(cache):
    with pytest.raises(DataError, match="one row per item"):
        find_embedder(lambda items: np.zeros(len(items)))


def test_a_small_model_of_transformers_from_a_folder(tiny_bert, cache):
    rows = embed(["money money", "cat"], f"hf:{tiny_bert}")
    assert rows.shape == (2, 8)
    assert not np.allclose(rows[0], rows[1])


@pytest.fixture
def hub():
    """The module transformers; where it is missing, the test says so and is skipped."""
    return pytest.importorskip("transformers", reason="the extra 'hub' is not installed")


def save_model_of_images(transformers, kind, folder, **settings):
    """A network with random weights and what prepares its pictures: 32 × 32 pixels, from [0, 1] to (x − mean) / std."""
    vit = {"num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 16, "image_size": 32, "patch_size": 8}
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        if kind == "vit":
            model = transformers.ViTModel(transformers.ViTConfig(hidden_size=8, **vit))
        else:
            config = transformers.ResNetConfig(
                embedding_size=8, hidden_sizes=[8, 12], depths=[1, 1], layer_type="basic"
            )
            model = transformers.ResNetModel(config)
    model.save_pretrained(folder)
    transformers.ViTImageProcessor(size={"height": 32, "width": 32}, **settings).save_pretrained(folder)
    return model.eval()


@pytest.mark.parametrize(("kind", "dim", "positions"), [("vit", 8, 1), ("resnet", 12, (2, 3))])
def test_a_model_of_images_from_a_folder_averages_its_last_layer(hub, tmp_path, kind, dim, positions):
    model = save_model_of_images(hub, kind, tmp_path, image_mean=[0.5, 0.4, 0.3], image_std=[0.5, 0.25, 0.2])
    pictures = np.random.default_rng(1).integers(0, 256, (3, 32, 32, 3), dtype=np.uint8)
    x = (torch.from_numpy(pictures) / 255 - torch.tensor([0.5, 0.4, 0.3])) / torch.tensor([0.5, 0.25, 0.2])
    with torch.no_grad():
        expected = model(pixel_values=x.permute(0, 3, 1, 2)).last_hidden_state.mean(positions).numpy()
    found = find_embedder(f"hf:{tmp_path}")
    assert (found.kind, found.dim) == ("image", dim)
    assert np.abs(found.rows(list(pictures)) - expected).max() < 1e-5
    assert np.abs(expected[0] - expected[1]).max() > 1e-3


def test_a_picture_of_three_rows_is_not_taken_for_three_colors(hub, tmp_path):
    save_model_of_images(hub, "vit", tmp_path)
    found = find_embedder(f"hf:{tmp_path}")
    rows = found.rows([np.full((height, 32, 3), [250, 120, 10], np.uint8) for height in (32, 3)])
    assert np.abs(rows[0] - rows[1]).max() < 1e-5


def test_models_that_differ_in_the_preparation_only_share_no_rows(hub, tmp_path, cache):
    save_model_of_images(hub, "vit", tmp_path / "a", image_mean=[0.5] * 3)
    save_model_of_images(hub, "vit", tmp_path / "b", image_mean=[0.1] * 3)
    picture = [np.random.default_rng(2).integers(0, 256, (32, 32, 3), dtype=np.uint8)]
    a, b = (embed(picture, f"hf:{tmp_path / name}") for name in "ab")
    assert np.abs(a - b).max() > 0.01
    assert np.array_equal(embed(picture, f"hf:{tmp_path / 'a'}"), a)


def test_a_folder_without_a_model_is_one_sentence(tmp_path):
    pytest.importorskip("transformers", reason="the extra 'hub' is not installed")
    with pytest.raises(OptionError, match="cannot be opened with transformers"):
        find_embedder(f"hf:{tmp_path}")
