"""The weighting ``prior``: a two-sample comparison handed through, with options that are checked and a state."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
import torch

import wrssl
from wrssl.api import DataError, OptionError, Pool
from wrssl.evaluate import auroc, is_ood
from wrssl.judging import PoolJudge
from wrssl.priors import DEFAULT, PRIORS, fit_prior
from wrssl.registry import WEIGHTINGS
from wrssl.weighting.prior import PriorWeighting

ALL = slice(None)
CONVERSIONS = {"tensor": lambda x: x, "array": lambda x: x.numpy(), "lists": lambda x: x.double().tolist()}


def normal(*shape, seed):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


@pytest.fixture
def half_foreign(make_pool):
    """Sixty members, every other of which is elsewhere, and forty labeled examples."""
    rows = normal(60, 3, seed=1)
    rows[1::2] += 4
    return make_pool(rows, known=normal(40, 3, seed=2))


def set_up(pool, **options):
    weighting = WEIGHTINGS.create("prior", options)
    weighting.setup(pool)
    return weighting


@pytest.mark.parametrize(("kinds", "names"), [("default", DEFAULT), ("linear", ("linear",))])
@pytest.mark.parametrize("embedding", ["pca", "raw", "features"])
def test_weights_and_belonging_are_those_of_the_prior(kinds, names, embedding, half_foreign):
    weighting = set_up(half_foreign, embedding=embedding, kinds=kinds)
    labels = half_foreign.known_labels.numpy()
    prior = fit_prior(half_foreign.embed_known.rows, labels, half_foreign.embed.rows, half_foreign.seed, names)
    assert set(half_foreign.embed.asked) == set(half_foreign.embed_known.asked) == {embedding}
    index = torch.tensor([5, 0, 59, 5])
    weights = weighting.batch(index).weight
    assert weights.dtype == torch.float32
    np.testing.assert_array_equal(weights.numpy(), prior.weight(index.numpy()).astype(np.float32))
    for rows in (ALL, slice(7, 20)):
        found = weighting.belonging(rows)
        np.testing.assert_array_equal(found.p, prior.p(rows))
        np.testing.assert_array_equal(found.ood_score, prior.ood_score(rows))
        np.testing.assert_array_equal(found.weight, prior.weight(rows))


def test_it_finds_foreign_members_and_asks_for_nothing_else(half_foreign):
    weighting = set_up(half_foreign)
    foreign = np.arange(60) % 2 == 1
    assert auroc(-weighting.batch(torch.arange(60)).weight.numpy(), foreign) > 0.95
    assert auroc(weighting.belonging(ALL).ood_score, foreign) > 0.95
    assert weighting.request(0) is None
    assert weighting.visits is None
    assert isinstance(weighting, PoolJudge)
    assert weighting.clusters() is None
    assert not weighting.guarded
    assert not weighting.wants_truth
    assert not weighting.wants_reference
    index = torch.arange(10)
    now = weighting.batch(index)
    assert torch.equal(now.factor, now.weight)
    assert torch.equal(now.presence, now.weight)


def test_the_seed_of_the_pool_decides(half_foreign, make_pool):
    again, other = (
        set_up(make_pool(half_foreign.embed.rows, known=half_foreign.embed_known.rows, seed=seed)) for seed in (3, 4)
    )
    index = torch.arange(60)
    assert torch.equal(set_up(half_foreign).batch(index).weight, again.batch(index).weight)
    assert not np.array_equal(again.prior.scores, other.prior.scores)


def test_a_seed_may_be_larger_than_that_of_numpy(half_foreign, make_pool):
    large = make_pool(half_foreign.embed.rows, known=half_foreign.embed_known.rows, seed=2**62 + 5)
    assert np.isfinite(set_up(large, kinds="linear").prior.scores).all()


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"embedding": "umap"}, r"^embedding must be one of pca, raw, features or a pair of arrays, not 'umap'\.$"),
        ({"kinds": "magic"}, r"^There is no kind of prior 'magic'; choose one of linear, .*trees, or register"),
        ({"kinds": "linear,,trees"}, r"^There is no kind of prior ''; choose one of"),
        ({"kinds": ""}, r"^There is no kind of prior ''; choose one of"),
        ({"refresh": -1}, r"^refresh counts steps and cannot be negative, but it is -1\.$"),
        ({"refresh": 2.5}, r"^The option 'refresh' must be a whole number, not 2\.5\.$"),
        ({"kinds": 3}, r"^The option 'kinds' must be text, not 3\.$"),
        ({"K": 3}, r"has no option 'K'; its options are: embedding, kinds, refresh\.$"),
    ],
    ids=str,
)
def test_options_are_checked_with_sentences(options, sentence):
    with pytest.raises(OptionError, match=sentence):
        WEIGHTINGS.create("prior", options)


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("default", DEFAULT),
        ("trees", ("trees",)),
        (" linear , energy", ("linear", "energy")),
        ("linear,linear,kernel", ("linear", "kernel")),
        (",".join(PRIORS.names()), tuple(PRIORS.names())),
    ],
)
def test_kinds_are_names_with_commas(given, expected):
    assert PriorWeighting(kinds=given).kinds == expected


@pytest.mark.parametrize("convert", CONVERSIONS.values(), ids=CONVERSIONS)
@pytest.mark.parametrize("container", [tuple, list])
def test_an_own_embedding_is_a_pair_of_arrays(convert, container, half_foreign):
    pair = container([convert(half_foreign.embed.rows), convert(half_foreign.embed_known.rows)])
    own = set_up(half_foreign, embedding=pair)
    assert half_foreign.embed.asked == []
    assert torch.equal(own.batch(torch.arange(60)).weight, set_up(half_foreign).batch(torch.arange(60)).weight)


def test_validation_examples_may_be_left_out_of_it(make_pool):
    """The reference is the labeled part, followed by validation examples; an own embedding may know the first only."""
    rows, known = normal(60, 3, seed=1), normal(50, 3, seed=2)
    classes = (torch.arange(50) % 3 == 0).long()
    pool = dataclasses.replace(make_pool(rows, known=known, reference=20), known_labels=classes)  # 30 labeled ones
    weighting = set_up(pool, embedding=(rows, known[:30]), kinds="linear")
    prior, other = (
        fit_prior(known[:30], part.numpy(), rows, pool.seed, ("linear",)) for part in (classes[:30], classes[-30:])
    )
    np.testing.assert_array_equal(weighting.prior.scores, prior.scores)
    np.testing.assert_array_equal(weighting.prior.known, prior.known)
    assert not np.array_equal(prior.scores, other.scores), "classes count"
    assert prior.known.shape == (30,)


@pytest.mark.parametrize(("members", "known"), [(59, 40), (61, 40), (60, 39), (60, 41), (0, 40), (60, 0)])
def test_another_number_of_rows_is_a_sentence(members, known, half_foreign):
    with pytest.raises(
        DataError,
        match=rf"have {members} and {known} rows, but the pool has 60 members and there are 40 labeled examples",
    ):
        set_up(half_foreign, embedding=(normal(members, 3, seed=1), normal(known, 3, seed=2)))


@pytest.mark.parametrize("number", [10, 29, 31, 49])
def test_rows_are_those_of_the_labeled_or_of_all_known_examples(number, make_pool):
    """Thirty of fifty labeled examples are labeled; ten rows cannot be one per labeled example."""
    rows, known = normal(60, 3, seed=1), normal(50, 3, seed=2)
    pool = make_pool(rows, known=known, reference=20)
    with pytest.raises(DataError, match="there are 30 labeled examples; give one row per member and one per"):
        set_up(pool, embedding=(rows, known[:number]))
    assert set_up(pool, embedding=(rows, known), kinds="linear").prior.known.shape == (50,)


@pytest.mark.parametrize(
    "embedding",
    [np.zeros((60, 3)), torch.zeros(60, 3), (np.zeros((60, 3)),), [1, 2, 3], 7, None],
    ids=["array", "tensor", "one", "three", "number", "nothing"],
)
def test_what_is_no_pair_is_a_sentence(embedding, half_foreign):
    with pytest.raises(DataError, match=r"^An embedding of your own is a pair: the rows of the pool"):
        set_up(half_foreign, embedding=embedding)


@pytest.mark.parametrize("columns", [1, 4])
def test_rows_of_different_width_are_a_sentence(columns, half_foreign):
    with pytest.raises(DataError):
        set_up(half_foreign, embedding=(normal(60, 3, seed=1), normal(40, columns, seed=2)))


@pytest.mark.parametrize("where", [0, 1])
def test_numbers_that_are_not_finite_are_a_sentence(where, half_foreign):
    pair = normal(60, 3, seed=1), normal(40, 3, seed=2)
    pair[where][7, 1] = float("nan")
    with pytest.raises(DataError, match="NaN or infinite"):
        set_up(half_foreign, embedding=pair)


class Changing:
    """Features of a network in training: further apart whenever they are asked for."""

    def __init__(self, rows, foreign):
        self.rows, self.foreign, self.asked = rows, foreign, 0

    def __call__(self, kind):
        self.asked += 1
        return self.rows + 0.7 * self.asked * self.foreign[:, None]


@pytest.mark.parametrize(("embedding", "refresh", "expected"), [
    ("features", 10, [0, 10, 20, 30]), ("features", 0, [0]), ("pca", 10, [0]), ("raw", 10, [0]),
])  # fmt: skip
def test_features_are_compared_again(embedding, refresh, expected, make_pool):
    rows, foreign = normal(200, 3, seed=1), (torch.arange(200) % 2).float()
    plain = make_pool(rows, known=normal(60, 3, seed=2))
    pool = Pool(200, 2, Changing(rows, foreign), 3, None, 0, plain.embed_known, plain.known_labels)
    weighting = set_up(pool, embedding=embedding, refresh=refresh, kinds="linear")
    quality, scores = [], []
    for step in range(35):
        weighting.begin(step)
        quality.append(auroc(weighting.belonging(ALL).ood_score, foreign.numpy() > 0))
        scores.append(weighting.prior.scores)
    changed = [step for step in range(1, 35) if scores[step] is not scores[step - 1]]
    assert changed == expected[1:]
    assert [step for step in range(1, 35) if quality[step] != quality[step - 1]] == expected[1:]
    again = Changing(rows, foreign)
    for step in expected:  # each with the features of that step and a seed of its own
        prior = fit_prior(
            plain.embed_known(embedding), plain.known_labels.numpy(), again(embedding), 3 + step, ("linear",)
        )
        np.testing.assert_array_equal(scores[step], prior.scores)
    assert (quality[-1] > quality[0] + 0.05) == (len(expected) > 1)


def test_the_state_goes_into_a_new_object(half_foreign, make_pool):
    one, other = set_up(half_foreign), WEIGHTINGS.create("prior")
    assert other.state_dict() == {}
    other.load_state_dict({key: value.clone() for key, value in one.state_dict().items()})
    index = torch.arange(60)
    assert torch.equal(one.batch(index).weight, other.batch(index).weight)
    for a, b in zip(one.belonging(ALL), other.belonging(ALL), strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("known", [0, 1, 18, 19])
def test_from_few_references_nothing_is_concluded(known, make_pool):
    weighting = set_up(make_pool(normal(60, 3, seed=1) + 50, known=normal(known, 3, seed=2)))
    assert weighting.batch(torch.arange(60)).weight.tolist() == [1] * 60
    found = weighting.belonging(ALL)
    assert found.p.tolist() == [1] * 60
    assert found.ood_score.tolist() == [0.5] * 60
    assert found.weight.tolist() == [1] * 60


@pytest.mark.parametrize("weights", ["prior", "wr"])
@pytest.mark.parametrize(("labels", "possible"), [(18, False), (20, True)])
def test_from_few_labels_no_member_is_dropped(weights, labels, possible, moons):
    """A p-value of 5 % needs nineteen references; the weighting concludes something from twenty on."""
    x, y = moons.labeled
    rows = torch.cat([(y == k).nonzero().flatten()[: labels // 2] for k in (0, 1)])
    own = wrssl.Scenario(labeled=(x[rows], y[rows]), unlabeled=moons.unlabeled, is_ood=is_ood(moons))
    result = wrssl.fit(own, method="entmin", weights=weights, steps=3)
    assert (result.verdicts["verdict"] == "drop").any() == possible


def test_the_table_shows_the_judgment_of_the_weighting(moons):
    """p and ood_score come from the comparison and not from the energy of the network, which is hardly trained."""
    result = wrssl.fit(moons, method="entmin", weights="prior", steps=2, seed=0)
    energy = wrssl.fit(moons, method="entmin", weights="none", steps=2, seed=0)
    assert result.metrics["ood_auroc"] > 0.95
    assert not np.allclose(result.verdicts["ood_score"], energy.verdicts["ood_score"], atol=0.05)
    assert (result.verdicts["weight"] == result.weights).all()


@pytest.fixture(scope="module")
def moons():
    return wrssl.load_scenario("moons", ood="faraway", ratio=0.5, seed=0)
