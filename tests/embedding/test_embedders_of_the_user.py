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


def test_a_small_model_of_transformers_from_a_folder(tmp_path, cache):
    transformers = pytest.importorskip("transformers", reason="the extra 'hub' is not installed")
    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "money", "cat"]
    (tmp_path / "vocab.txt").write_text("\n".join(words))
    config = transformers.BertConfig(
        vocab_size=len(words), hidden_size=8, num_hidden_layers=1, num_attention_heads=2, intermediate_size=16
    )
    with torch.random.fork_rng(devices=[]):
        transformers.BertModel(config).save_pretrained(tmp_path / "model")
    transformers.BertTokenizerFast(vocab_file=str(tmp_path / "vocab.txt")).save_pretrained(tmp_path / "model")
    rows = embed(["money money", "cat"], f"hf:{tmp_path / 'model'}")
    assert rows.shape == (2, 8)
    assert not np.allclose(rows[0], rows[1])


def test_a_folder_without_a_model_is_one_sentence(tmp_path):
    pytest.importorskip("transformers", reason="the extra 'hub' is not installed")
    with pytest.raises(OptionError, match="cannot be opened with transformers"):
        find_embedder(f"hf:{tmp_path}")
