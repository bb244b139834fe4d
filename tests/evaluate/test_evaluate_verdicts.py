"""Verdicts: conformal p-values by brute force and by enumeration, the rule, the table."""

from __future__ import annotations

import io
import itertools
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
import torch

from wrssl.evaluate import FALSE_DROP_RATE, energy, verdict_of, verdict_table
from wrssl.judging import Belonging
from wrssl.priors import conformal_p


def randn(*shape, seed):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def test_energy_is_minus_log_sum_exp():
    z = randn(5, 4, seed=0).double()
    np.testing.assert_allclose(energy(z).numpy(), -np.log(np.exp(z.numpy()).sum(1)), rtol=1e-12)
    assert torch.isfinite(energy(torch.tensor([[1000.0, 0.0], [-1000.0, -1000.0]]))).all()
    assert energy(torch.tensor([[0.0, 0.0]])) > energy(torch.tensor([[9.0, 0.0]])), "nothing recognized is stranger"


def test_conformal_p_by_hand():
    """A high score belongs: p counts the references that are at least as strange."""
    p = conformal_p(np.array([4.0, 3.0, 2.0, 1.5, 0.0, -1.0]), np.array([2.0, 0.0, 3.0]))
    assert p.tolist() == [1.0, 1.0, 0.75, 0.5, 0.5, 0.25]
    assert p.dtype == np.float64


@pytest.mark.parametrize("n", [1, 4, 19, 20])
def test_at_most_a_share_a_of_those_that_belong_has_p_below_a(n):
    """Exactly, over the n + 1 equally likely ranks of a member among the references."""
    scores = np.arange(float(n + 1))
    p = np.array([conformal_p(scores[[k]], scores[np.arange(n + 1) != k])[0] for k in range(n + 1)])
    for count in range(n + 2):
        a = count / (n + 1)
        assert (p <= a).sum() == count, "valid, and as sharp as possible"


def test_ties_keep_it_valid():
    """All 3⁴ ways to draw a member and three references from three values: P(p ≤ a) ≤ a."""
    p = [
        Fraction(conformal_p(np.array([float(member)]), np.array(others, dtype=np.float64))[0]).limit_denominator(4)
        for member, *others in itertools.product(range(3), repeat=4)
    ]
    for a in (Fraction(k, 16) for k in range(17)):
        assert Fraction(sum(v <= a for v in p), 81) <= a


def test_the_rule_and_its_boundaries():
    p = np.array([0.01, 0.05, np.nextafter(0.05, 1), 0.2, np.nextafter(0.2, 1), 1.0, 1.0, 1.0, 0.01])
    weight = np.array([1.0, 1.0, 1.0, 1.0, 1.0, 0.5, np.nextafter(0.5, 0), 0.0, 0.0])
    want = ["drop", "drop", "doubt", "doubt", "keep", "keep", "doubt", "doubt", "drop"]
    assert verdict_of(p, weight, 0.05).tolist() == want


def test_another_rate():
    p = np.array([0.1, 0.11, 0.4, 0.41])
    assert verdict_of(p, np.ones(4), 0.1).tolist() == ["drop", "doubt", "doubt", "keep"]


def table(n_reference=200, is_ood=None, cluster=None, rate=FALSE_DROP_RATE, classes=("cat", "dog", "eel")):
    logits, reference = 2 * randn(50, 3, seed=2), 2 * randn(n_reference, 3, seed=3)
    weight = np.linspace(0, 1, 50)
    frame = verdict_table(
        [f"a/{k}.png" for k in range(50)], logits, reference, weight, is_ood, cluster, np.array(classes), rate
    )
    return frame, logits, reference, weight


COLUMNS = ["id", "weight", "ood_score", "is_ood", "verdict", "cluster", "pseudo_label", "confidence"]


def test_the_table_by_hand():
    truth, cluster = torch.arange(50) % 3 == 0, torch.arange(50) % 7
    frame, logits, reference, weight = table(is_ood=truth, cluster=cluster)
    assert list(frame.columns) == COLUMNS
    assert frame["id"].tolist() == [f"a/{k}.png" for k in range(50)]
    assert list(frame.index) == list(range(50))
    z = logits.double().numpy()
    softmax = np.exp(z) / np.exp(z).sum(1, keepdims=True)
    strange, usual = -np.log(np.exp(z).sum(1)), -np.log(np.exp(reference.double().numpy()).sum(1))
    p = np.array([(1 + (usual >= s).sum()) / 201 for s in strange])
    np.testing.assert_allclose(frame["weight"], weight, rtol=0, atol=0)
    np.testing.assert_allclose(frame["ood_score"], 1 - p, rtol=0, atol=1e-12)
    np.testing.assert_allclose(frame["confidence"], softmax.max(1), rtol=1e-6)
    assert frame["is_ood"].tolist() == truth.long().tolist()
    assert frame["cluster"].tolist() == cluster.tolist()
    assert frame["pseudo_label"].tolist() == [("cat", "dog", "eel")[k] for k in z.argmax(1)]
    want = ["drop" if a <= 0.05 else "doubt" if a <= 0.2 or w < 0.5 else "keep" for a, w in zip(p, weight, strict=True)]
    assert frame["verdict"].tolist() == want
    assert set(want) == {"drop", "doubt", "keep"}
    assert frame[["weight", "ood_score", "confidence"]].ge(0).all().all()
    assert frame[["weight", "ood_score", "confidence"]].le(1).all().all()


def test_a_high_energy_is_strange():
    """Logits of nothing recognized among references that are recognized, and the other way round."""
    sure, unsure = torch.tensor([[9.0, 0.0]]), torch.tensor([[0.0, 0.0]])
    for member, reference, score in ((unsure, sure, 1 - 1 / 40), (sure, unsure, 0.0)):
        frame = verdict_table(None, member, reference.repeat(39, 1), np.ones(1), None, None, np.arange(2))
        assert frame["ood_score"].tolist() == pytest.approx([score])


class Judge:
    """p-values and scores of its own for members 0 … 49, and a list of the parts that it was asked about."""

    def __init__(self, silent_before=0):
        rng = np.random.default_rng(8)
        self.p, self.score, self.asked, self.silent_before = rng.random(50) ** 2, rng.random(50), [], silent_before

    def __call__(self, rows):
        self.asked.append((rows.start, rows.stop))
        if rows.start < self.silent_before:
            return None
        return Belonging(self.p[rows], self.score[rows], np.zeros(len(self.p[rows])))


@pytest.mark.parametrize("part", [7, 25, 50])
def test_the_judgment_of_the_weighting_replaces_that_of_the_energy(part):
    """Its p makes the verdict and its score is shown; labels and confidence are the network's, weights as passed."""
    plain, logits, reference, weight = table()
    judge = Judge()
    frame = verdict_table(
        plain["id"], logits.split(part), reference, weight, None, None, np.array(["cat", "dog", "eel"]), belonging=judge
    )
    assert judge.asked == [(start, min(start + part, 50)) for start in range(0, 50, part)]
    assert frame["ood_score"].tolist() == judge.score.tolist(), "which need not be 1 − p"
    pairs = zip(judge.p, weight, strict=True)
    want = ["drop" if p <= 0.05 else "doubt" if p <= 0.2 or w < 0.5 else "keep" for p, w in pairs]
    assert frame["verdict"].tolist() == want
    assert want != plain["verdict"].tolist()
    assert set(want) == {"drop", "doubt", "keep"}
    untouched = ["id", "weight", "is_ood", "cluster", "pseudo_label", "confidence"]
    assert frame[untouched].equals(plain[untouched])


def test_where_the_weighting_has_no_judgment_the_energy_decides():
    plain, logits, reference, weight = table()
    rest = plain["id"], logits.split(10), reference, weight, None, None, np.array(["cat", "dog", "eel"])
    assert verdict_table(*rest, belonging=Judge(silent_before=50)).equals(plain)
    assert verdict_table(*rest[:1], logits, *rest[2:], belonging=lambda rows: None).equals(plain)
    judge = Judge(silent_before=20)
    mixed = verdict_table(*rest, belonging=judge)
    assert mixed["ood_score"].tolist() == [*plain["ood_score"][:20], *judge.score[20:]]


@pytest.mark.parametrize("known", [True, False])
def test_types_and_what_is_unknown(known):
    truth = torch.arange(50) % 2 == 0 if known else None
    cluster = (torch.arange(50) % 4).to(torch.int32) if known else None
    frame = table(is_ood=truth, cluster=cluster, classes=(3, 5, 8))[0]
    assert [str(frame[name].dtype).lower() for name in ("weight", "ood_score", "confidence")] == ["float64"] * 3
    assert str(frame["is_ood"].dtype).lower() == "int8"
    assert str(frame["cluster"].dtype).lower() == "int16"
    assert str(frame["verdict"].dtype) == "category"
    assert str(frame["pseudo_label"].dtype) == "int16"
    assert set(frame["pseudo_label"]) <= {3, 5, 8}
    assert frame["is_ood"].isna().all() == (not known)
    assert frame["cluster"].isna().all() == (not known)
    text = frame.to_csv(index=False)
    row = text.splitlines()[1].split(",")
    assert text.splitlines()[0].split(",") == COLUMNS
    assert (row[3], row[5]) == (("1", "0") if known else ("", ""))
    assert len(pd.read_csv(io.StringIO(text))) == 50


@pytest.mark.parametrize(
    ("n", "rate", "possible"), [(18, 0.05, False), (19, 0.05, True), (8, 0.1, False), (9, 0.1, True)]
)
def test_with_too_few_references_nothing_is_dropped(n, rate, possible):
    """The smallest p is 1/(n + 1): below n = 1/rate − 1 no member can be that strange."""
    reference = 5 + randn(n, 3, seed=4).abs()
    frame = verdict_table(range(4), torch.full((4, 3), -50.0), reference, np.ones(4), None, None, np.arange(3), rate)
    assert (frame["verdict"] == "drop").all() == possible
    assert (frame["verdict"] == "drop").any() == possible


def test_the_default_false_drop_rate_is_five_percent():
    assert FALSE_DROP_RATE == 0.05
    frame, *_ = table()
    assert frame["verdict"].tolist() == table(rate=0.05)[0]["verdict"].tolist()
    assert frame["verdict"].tolist() != table(rate=0.2)[0]["verdict"].tolist()


def test_members_from_the_reference_distribution_are_rarely_dropped():
    reference, pool = randn(2000, 5, seed=6), randn(2000, 5, seed=7)
    frame = verdict_table(range(2000), pool, reference, np.ones(2000), None, None, np.arange(5))
    assert (frame["verdict"] == "drop").mean() == pytest.approx(0.05, abs=0.015)


@pytest.mark.parametrize("part", [1, 7, 25, 49, 50, 80])
def test_parts_give_the_table_of_the_whole(part):
    truth, cluster = torch.arange(50) % 3 == 0, (torch.arange(50) % 7).to(torch.uint8)
    whole, logits, reference, weight = table(is_ood=truth, cluster=cluster)
    parts = verdict_table(
        whole["id"].tolist(),
        iter(logits.split(part)),
        reference,
        weight,
        truth,
        cluster,
        np.array(["cat", "dog", "eel"]),
    )
    assert parts.equals(whole)
    assert list(parts.dtypes) == list(whole.dtypes)


@pytest.mark.parametrize("members", [49, 51])
def test_logits_and_weights_must_be_of_the_same_members(members):
    with pytest.raises(ValueError, match="50"):
        verdict_table(None, [randn(members, 3, seed=1)], randn(9, 3, seed=2), np.ones(50), None, None, np.arange(3))


@pytest.mark.parametrize(
    ("ids", "want"),
    [
        (None, [0, 1, 2, 3]),
        (range(4), [0, 1, 2, 3]),
        (range(10, 2, -2), [10, 8, 6, 4]),
        (np.array([5, 5, 1, 2]), [5, 5, 1, 2]),
        (np.array(["a", "b", "c", "dd"]), ["a", "b", "c", "dd"]),
        (("x", 2, "y", None), ["x", 2, "y", None]),
    ],
    ids=str,
)
def test_ids_of_any_kind(ids, want):
    frame = verdict_table(ids, randn(4, 3, seed=1), randn(9, 3, seed=2), np.ones(4), None, None, np.arange(3))
    assert frame["id"].tolist() == want


def test_the_table_shares_no_memory_with_what_it_was_made_of():
    weight, ids, truth = np.ones(50), np.arange(50), torch.zeros(50, dtype=torch.int8)
    cluster = torch.zeros(50, dtype=torch.int32)
    frame = verdict_table(ids, randn(50, 3, seed=1), randn(9, 3, seed=2), weight, truth, cluster, np.arange(3))
    for values in (weight, ids, truth.numpy(), cluster.numpy()):
        values += 7
    assert frame["weight"].eq(1).all()
    assert frame["id"].tolist() == list(range(50))
    assert frame["is_ood"].eq(0).all()
    assert frame["cluster"].eq(0).all()


@pytest.mark.parametrize("known", [True, False])
@pytest.mark.parametrize(
    "names", [["a rather long name of a class", "another", "b"], [3, 5, 8]], ids=["words", "numbers"]
)
def test_bytes_per_member(known, names):
    """However long the words are: 4 for a number, 24 for what is measured, 8 for what is counted or named."""
    n = 20_000
    truth = torch.zeros(n, dtype=torch.bool) if known else None
    cluster = torch.zeros(n, dtype=torch.uint8) if known else None
    logits, reference = randn(n, 3, seed=1), randn(99, 3, seed=2)
    frame = verdict_table(range(n), logits, reference, np.ones(n), truth, cluster, np.array(names))
    assert frame.memory_usage(index=True).sum() <= 36 * n + 2000
    words = verdict_of(np.linspace(0, 1, n), np.ones(n), 0.05)
    assert len({id(word) for word in words}) == 3


def test_words_sort_and_group_as_words_do():
    frame = table()[0]
    for name in ("verdict", "pseudo_label"):
        words = pd.Series(frame[name].tolist())
        assert frame[name].sort_values(kind="stable").tolist() == words.sort_values(kind="stable").tolist()
        counts = frame.groupby(name, observed=True).size()
        assert counts.to_dict() == words.value_counts().to_dict()
        assert list(counts.index) == sorted(set(words))


def test_the_file_says_what_it_said_when_words_were_words_and_numbers_long():
    """Types are for memory; verdicts.csv does not show them."""
    frame = table(is_ood=torch.arange(50) % 3 == 0, cluster=torch.arange(50) % 7)[0]
    plain = frame.assign(
        verdict=frame["verdict"].astype(object),
        pseudo_label=frame["pseudo_label"].astype(object),
        cluster=frame["cluster"].astype("int64"),
        is_ood=frame["is_ood"].astype("int64"),
    )
    assert frame.to_csv(index=False) == plain.to_csv(index=False)
