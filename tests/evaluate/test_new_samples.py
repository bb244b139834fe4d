"""Verdicts on examples outside of the pool: by the scorer of the weighting, else by the energy; stored as tensors."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from safetensors import safe_open
from safetensors.torch import save_file

from wrssl.api import OptionError
from wrssl.evaluate import NewSampleJudge, energy, verdict_of
from wrssl.judging import Belonging, PoolJudge
from wrssl.priors import conformal_p
from wrssl.registry import WEIGHTINGS

CLASSES = np.array(["cat", "dog", "eel"])
USUAL = np.linspace(0.0, 6.0, 40)


class Scorer:
    """p is the first column, times a number; half of the examples have a small weight."""

    def __init__(self, factor):
        self.factor = factor

    def __call__(self, x):
        p = (self.factor * x[:, 0]).double().numpy()
        return Belonging(p, 0.5 * (1 - p), np.arange(len(p)) % 2 / 1.0)

    def state_dict(self):
        return {"factor": torch.tensor([[self.factor, 0.0]]).T}  # not contiguous in memory


class Judging(PoolJudge):
    """A weighting that reads its scorer back."""

    @classmethod
    def load_new_sample_scorer(cls, state):
        cls.state = state
        return Scorer(float(state["factor"][0, 0]) if "factor" in state else 1.0)


@pytest.fixture
def registered():
    with WEIGHTINGS.isolated():
        WEIGHTINGS.register("judging")(Judging)
        yield


@pytest.fixture
def examples(generator):
    return torch.rand(50, 4, generator=generator), 2 * torch.randn(50, 3, generator=generator)


def test_without_a_scorer_the_energy_decides(examples):
    x, logits = examples
    table = NewSampleJudge(USUAL, 0.1)(None, x, logits, CLASSES)
    p = conformal_p(-energy(logits).double().numpy(), USUAL)
    assert list(table.columns) == ["id", "label", "confidence", "ood_score", "verdict"]
    assert table["id"].tolist() == list(range(50))
    assert table["label"].tolist() == CLASSES[logits.numpy().argmax(1)].tolist()
    np.testing.assert_allclose(table["confidence"], logits.softmax(1).numpy().max(1))
    assert table["ood_score"].tolist() == (1 - p).tolist()
    assert table["verdict"].tolist() == verdict_of(p, np.ones(50), 0.1).tolist()
    assert set(table["verdict"]) == {"keep", "doubt", "drop"}


def test_the_scorer_of_the_weighting_decides_where_there_is_one(examples):
    x, logits = examples
    names = [f"n{k}" for k in range(50)]
    table = NewSampleJudge(USUAL, 0.1, Scorer(0.5), "judging")(names, x, logits, CLASSES)
    p, score, weight = Scorer(0.5)(x)
    assert table["id"].tolist() == names
    assert table["ood_score"].tolist() == score.tolist()
    assert table["verdict"].tolist() == verdict_of(p, weight, 0.1).tolist()
    assert table["label"].tolist() == CLASSES[logits.numpy().argmax(1)].tolist()


@pytest.mark.parametrize("scorer", [None, Scorer(0.5)], ids=["energy", "scorer"])
def test_stored_and_read_back_it_says_the_same(registered, examples, tmp_path, scorer):
    judge = NewSampleJudge(USUAL, 0.1, scorer, "judging")
    judge.save(tmp_path / "judge.safetensors")
    back = NewSampleJudge.load(tmp_path / "judge.safetensors")
    assert back(None, *examples, CLASSES).equals(judge(None, *examples, CLASSES))
    back.save(tmp_path / "again.safetensors")
    assert (tmp_path / "again.safetensors").read_bytes() == (tmp_path / "judge.safetensors").read_bytes()


def test_the_file_holds_tensors_and_the_name_of_the_weighting(tmp_path):
    NewSampleJudge(USUAL, 0.1, Scorer(0.5), "judging").save(tmp_path / "judge.safetensors")
    with safe_open(tmp_path / "judge.safetensors", framework="pt") as file:
        assert file.metadata() == {"weighting": "judging"}
        assert sorted(file.keys()) == ["rate", "scorer/factor", "usual"]


def test_a_scorer_without_tensors_is_read_back_too(registered, examples, tmp_path):
    class Fixed(Scorer):
        def state_dict(self):
            return {}

    judge = NewSampleJudge(USUAL, 0.1, Fixed(1.0), "judging")
    judge.save(tmp_path / "judge.safetensors")
    assert NewSampleJudge.load(tmp_path / "judge.safetensors")(None, *examples, CLASSES).equals(
        judge(None, *examples, CLASSES)
    )


def test_a_weighting_that_is_not_registered_is_asked_for_when_it_is_needed(examples, tmp_path):
    """A run of a plug-in can be read without it; only new samples cannot be judged, until it is registered."""
    judge = NewSampleJudge(USUAL, 0.1, Scorer(0.5), "judging")
    judge.save(tmp_path / "judge.safetensors")
    back = NewSampleJudge.load(tmp_path / "judge.safetensors")
    back.save(tmp_path / "again.safetensors")
    assert (tmp_path / "again.safetensors").read_bytes() == (tmp_path / "judge.safetensors").read_bytes()
    with pytest.raises(OptionError, match=r"'judging', which is not registered; give the file .* --plugin, or import"):
        back(None, *examples, CLASSES)
    with WEIGHTINGS.isolated():
        WEIGHTINGS.register("judging")(Judging)
        assert back(None, *examples, CLASSES).equals(judge(None, *examples, CLASSES))


def test_a_weighting_of_that_name_that_judges_nothing_is_another_one(examples, tmp_path):
    NewSampleJudge(USUAL, 0.1, Scorer(0.5), "none").save(tmp_path / "judge.safetensors")
    with pytest.raises(OptionError, match="'none', which is not registered"):
        NewSampleJudge.load(tmp_path / "judge.safetensors")(None, *examples, CLASSES)


class TestFilesOfVersion010:
    """Tensors of the prior are under ``prior/``; its kinds are in the metadata, and no weighting is named."""

    TENSORS = {"usual": torch.from_numpy(USUAL), "rate": torch.tensor(0.1, dtype=torch.float64)}  # noqa: RUF012

    def test_a_prior_is_read_by_the_weighting_prior(self, monkeypatch, examples, tmp_path):
        found = []

        def load(state):
            found.append(state)
            return Scorer(0.5)

        monkeypatch.setattr(WEIGHTINGS.get("prior"), "load_new_sample_scorer", load)
        tensors = {**self.TENSORS, "prior/own": torch.ones(2, 3), "prior/numbers": torch.tensor([1, 2])}
        save_file(tensors, tmp_path / "judge.safetensors", metadata={"kinds": "linear,é"})
        judge = NewSampleJudge.load(tmp_path / "judge.safetensors")
        (state,) = found
        assert sorted(state) == ["kinds", "numbers", "own"]
        assert state["kinds"].dtype == torch.uint8
        assert bytes(state["kinds"].tolist()).decode("utf-8") == "linear,é"
        assert (judge.weighting, judge.rate) == ("prior", 0.1)
        expected = NewSampleJudge(USUAL, 0.1, Scorer(0.5))
        assert judge(None, *examples, CLASSES).equals(expected(None, *examples, CLASSES))

    @pytest.mark.parametrize("metadata", [{"kinds": ""}, None])
    def test_without_a_prior_the_energy_decides(self, examples, tmp_path, metadata):
        save_file(self.TENSORS, tmp_path / "judge.safetensors", metadata=metadata)
        judge = NewSampleJudge.load(tmp_path / "judge.safetensors")
        assert judge.scorer is None
        expected = NewSampleJudge(USUAL, 0.1)
        assert judge(None, *examples, CLASSES).equals(expected(None, *examples, CLASSES))
