"""``minilm``: texts by meaning, one by one, offline."""

from __future__ import annotations

import numpy as np
import pytest

from wrssl.api import DataError, OptionError
from wrssl.embedding import embed, find_embedder, texts


@pytest.fixture(scope="module")
def minilm():
    pytest.importorskip("onnx", reason="the extra 'text' is not installed")
    try:
        return find_embedder("minilm")
    except OptionError as error:
        pytest.skip(str(error))


def test_near_meanings_are_near(minilm, cache):
    money, card, cat = embed(["What is my account balance?", "How much money do I have?", "The cat sleeps."], minilm)
    assert money @ card > money @ cat + 0.3


def test_rows_have_length_one_and_do_not_depend_on_neighbors(minilm):
    items = ["short", "a much longer text " * 20, "", "größer 漢字 🙂"]
    rows = minilm.rows(items)
    assert np.allclose(np.linalg.norm(rows, axis=1), 1, atol=1e-5)
    assert np.array_equal(rows, np.concatenate([minilm.rows([item]) for item in items]))


def test_texts_that_differ_after_the_last_token_are_equal(minilm):
    rows = minilm.rows(["word " * 400 + "end", "word " * 400 + "other"])
    assert np.array_equal(rows[0], rows[1])


def test_missing_files_are_one_sentence_with_the_command(monkeypatch):
    monkeypatch.setattr(texts, "NETWORK", ("no_such_package", "model.onnx", ""))
    with pytest.raises(OptionError, match=r'pip install "wrssl\[text\]"'):
        find_embedder("minilm")


def test_a_changed_network_is_refused(minilm, monkeypatch):
    monkeypatch.setattr(texts, "NETWORK", (*texts.NETWORK[:2], "0" * 64))
    with pytest.raises(DataError, match="not the file that was published"):
        find_embedder("minilm").rows(["a"])
