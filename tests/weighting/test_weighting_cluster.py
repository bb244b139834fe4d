"""wr-cluster: one weight per cluster, whatever is clustered."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from wrssl.api import DataError
from wrssl.registry import WEIGHTINGS

ALL = torch.arange(30)


def started(pool, **options):
    weighting = WEIGHTINGS.create("wr-cluster", {"K": 3, "l1": 0.0, **options})
    weighting.setup(pool)
    return weighting


def same_partition(a, b):
    """Two labelings that differ by the names of their clusters only."""
    pairs = set(zip(a.tolist(), b.tolist(), strict=True))
    return len(pairs) == len(set(a.tolist())) == len(set(b.tolist()))


@pytest.mark.parametrize("kind", ["pca", "raw"])
def test_named_embeddings_are_clustered_at_the_start(kind, make_pool, blobs):
    pool = make_pool()
    weighting = started(pool, embedding=kind)
    assert pool.embed.asked == [kind]
    assert same_partition(weighting.clusters(), blobs()[1])
    weighting.begin(0)
    weighting.begin(200)
    assert pool.embed.asked == [kind], "clustered again"
    assert weighting.batch(ALL).weight.tolist() == [1.0] * 30


@pytest.mark.parametrize("form", ["numpy", "tensor", "list", "images", "float64"])
def test_an_own_array_is_clustered_at_the_start(form, make_pool, blobs):
    rows, corner = blobs(seed=8)
    array = {
        "numpy": rows.numpy(),
        "tensor": rows,
        "list": rows.tolist(),
        "images": rows.view(30, 1, 1, 2).numpy(),
        "float64": rows.double().numpy(),
    }[form]
    pool = make_pool()
    weighting = started(pool, embedding=array)
    assert pool.embed.asked == []
    assert same_partition(weighting.clusters(), corner)


def test_features_are_clustered_when_they_have_been_learned(make_pool, make_signal, blobs):
    pool = make_pool()
    weighting = started(pool, embedding="features", warmup=8, L=2)
    assert pool.embed.asked == []
    for step in range(8):
        weighting.begin(step)
        assert weighting.request(step) is None
        weighting.update(torch.tensor([0, 1]), make_signal(None, step))
        assert weighting.batch(ALL).weight.tolist() == [1.0] * 30
    assert pool.embed.asked == []
    for step in range(8, 13):
        weighting.begin(step)
        assert pool.embed.asked == ["features"]
        assert (weighting.request(step) is not None) == (step % 2 == 0)
    assert same_partition(weighting.clusters(), blobs()[1])


def test_features_without_warmup_are_those_of_the_start(make_pool):
    pool = make_pool()
    weighting = started(pool, embedding="features", warmup=0)
    assert pool.embed.asked == ["features"]
    assert weighting.request(0) is not None


def test_the_default_warmup_is_200():
    assert WEIGHTINGS.create("wr-cluster").warmup == 200


def visit(weighting, make_signal):
    """A batch that holds members of two clusters of three: three of the one, one of the other."""
    cluster = weighting.clusters()
    k, other = cluster[0].item(), cluster[cluster != cluster[0]][0].item()
    index = torch.cat([ALL[cluster == k][:3], ALL[cluster == other][:1]])
    gradient = np.array([1.0, 2.0, 6.0, -1.0])
    weighting.update(index, make_signal(gradient))
    return {
        name: weighting.batch(ALL).weight[members]
        for name, members in (
            ("many", cluster == k),
            ("one", cluster == other),
            ("unseen", (cluster != k) & (cluster != other)),
        )
    }


def test_a_step_uses_the_mean_over_the_members_of_a_cluster(make_pool, make_signal):
    weighting = started(make_pool(), embedding="raw", beta=0.2)
    weighting.table.fill_(0.5)
    got = visit(weighting, make_signal)
    means = np.array([3.0, -1.0])
    want = 0.5 - 0.2 * means / np.sqrt(np.mean(means**2))
    for name, value in zip(("many", "one", "unseen"), (*want, 0.5), strict=True):
        assert got[name].unique().tolist() == pytest.approx([value], abs=1e-6), "members of a cluster share a weight"


def test_the_papers_step_uses_the_sum(make_pool, make_signal):
    weighting = started(make_pool(), embedding="raw", beta=0.02, compat="paper", alpha=0.1)
    weighting.table.fill_(0.5)
    got = visit(weighting, make_signal)
    for name, value in (("many", 0.5 - 0.02 * 9), ("one", 0.5 + 0.02), ("unseen", 0.5)):
        assert got[name].unique().tolist() == pytest.approx([value], abs=1e-6)


def test_weights_have_one_dimension(make_pool):
    assert started(make_pool()).batch(torch.tensor([3, 1])).weight.shape == (2,)


def test_more_clusters_than_members(make_pool, make_signal):
    rows = torch.tensor([[0.0], [1.0], [5.0], [9.0]])
    weighting = started(make_pool(rows), K=20, embedding="raw")
    assert sorted(weighting.clusters().tolist()) == [0, 1, 2, 3]
    weighting.update(torch.tensor([2]), make_signal([1.0]))
    torch.testing.assert_close(weighting.batch(torch.arange(4)).weight, torch.tensor([1.0, 1.0, 0.9, 1.0]))


def test_a_pool_of_equal_members_has_one_cluster(make_pool):
    """Blank images and duplicates are common in scraped pools: no warning, no error."""
    weighting = started(make_pool(torch.ones(12, 3)), embedding="raw")
    assert len(set(weighting.clusters().tolist())) == 1
    assert weighting.batch(torch.arange(12)).weight.tolist() == [1.0] * 12


@pytest.mark.parametrize("rows", [29, 31])
def test_a_row_too_few_or_too_many_is_a_sentence(rows, make_pool):
    with pytest.raises(DataError, match=f"has {rows} rows but the pool has 30 members; give one row per member"):
        started(make_pool(), embedding=np.zeros((rows, 2)))


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_values_that_are_not_finite_are_a_sentence(value, make_pool, blobs):
    rows = blobs()[0].numpy().copy()
    rows[4, 1] = value
    with pytest.raises(DataError, match="NaN or infinite values"):
        started(make_pool(), embedding=rows)


def test_one_number_per_member_is_an_embedding_or_a_sentence(make_pool):
    """A one-dimensional array is a plausible input: it is clustered or refused, never a traceback of torch."""
    try:
        weighting = started(make_pool(), embedding=np.arange(30.0))
    except DataError:
        return
    assert len(weighting.clusters()) == 30


def test_the_clusters_depend_on_the_seed_of_the_pool_alone(make_pool):
    rows = torch.randn(200, 5, generator=torch.Generator().manual_seed(1))
    one, two = (started(make_pool(rows, seed=11), K=7).clusters() for _ in range(2))
    assert torch.equal(one, two)


def test_the_state_goes_into_a_new_object_and_on_from_there(make_pool, make_signal):
    rows = torch.randn(30, 4, generator=torch.Generator().manual_seed(2))
    one = started(make_pool(rows, seed=1), K=5, embedding="features", warmup=3)
    one.begin(3)
    one.update(torch.arange(10), make_signal(torch.linspace(-1, 2, 10)))
    state = {name: value.clone() for name, value in one.state_dict().items()}

    pool = make_pool(torch.zeros(30, 4), seed=99)  # features that would cluster otherwise
    other = started(pool, K=5, embedding="features", warmup=3)
    other.load_state_dict(state)
    other.begin(4)
    assert pool.embed.asked == [], "a resumed run keeps its clusters"
    assert torch.equal(one.clusters(), other.clusters())
    for weighting in (one, other):
        weighting.update(torch.arange(5, 20), make_signal(torch.linspace(1, -3, 15)))
    assert torch.equal(one.batch(ALL).weight, other.batch(ALL).weight)
    assert not torch.equal(one.table, state["table"])


def test_a_state_from_before_the_clusters_takes_them_away_again(make_pool):
    """Trial steps may reach the warm-up; afterwards everything is as it was."""
    weighting = started(make_pool(), embedding="features", warmup=2)
    before = {name: value.clone() for name, value in weighting.state_dict().items()}
    assert weighting.clusters() is None
    weighting.begin(2)
    assert len(weighting.clusters()) == 30
    weighting.load_state_dict(before)
    assert weighting.clusters() is None
    assert weighting.batch(ALL).weight.tolist() == [1.0] * 30


def test_a_single_cluster_is_known_after_a_resume(make_pool):
    pool = make_pool(torch.ones(30, 2))
    one, other = (started(pool, embedding="features", warmup=2) for _ in range(2))
    one.begin(2)
    other.load_state_dict(one.state_dict())
    assert other.clusters().tolist() == [0] * 30


def test_a_second_set_up_forgets_the_first(make_pool, blobs):
    weighting = started(make_pool(), embedding="features", warmup=2)
    weighting.begin(2)
    weighting.setup(make_pool(blobs(12)[0]))
    assert weighting.clusters() is None
    assert weighting.batch(torch.arange(12)).weight.tolist() == [1.0] * 12


def test_the_clusters_of_a_batch_are_those_of_its_members_whatever_was_asked_before(make_pool):
    weighting = started(make_pool())
    size = weighting.pool.size
    index = torch.tensor([0, size - 1])
    assert torch.equal(weighting.entries(index), weighting.cluster_of[index].long())
    index[0] = size // 2  # the same tensor with another content
    assert torch.equal(weighting.entries(index), weighting.cluster_of[index].long())
    weighting.load_state_dict({**weighting.state_dict(), "cluster_of": (weighting.cluster_of + 1) % 3})
    assert torch.equal(weighting.entries(index), weighting.cluster_of[index].long())
