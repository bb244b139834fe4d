"""Refinement: the prior itself without evidence, any other weight with enough of it; groups by cluster and prior."""

from __future__ import annotations

import math

import pytest
import torch

from wrssl.api import HypergradientRequest, OptionError
from wrssl.weighting.kmeans import kmeans
from wrssl.weighting.refinement import Refinement

OPTIONS = HypergradientRequest()
PRIORS = torch.linspace(0, 1, 1001)


def refinement(clusters=4, size=1001, every=1):
    """Clusters 0, 1, … in turn."""
    made = Refinement(clusters, every, OPTIONS)
    made.cluster_of = (torch.arange(size) % clusters).to(torch.uint8)
    return made


def test_groups_are_clusters_in_three_levels():
    made = refinement(5, 200)
    prior = torch.rand(200, generator=torch.Generator().manual_seed(0))
    prior[:12] = torch.tensor([0.0, 1.0, 0.33, 0.34, 0.66, 0.67, 0.0, 1.0, 0.999999, 1e-9, 0.5, 0.2])
    index = torch.randperm(200, generator=torch.Generator().manual_seed(1))[:150]
    expected = [3 * (j % 5) + (0 if prior[j] < 1 / 3 else 1 if prior[j] < 2 / 3 else 2) for j in index.tolist()]
    assert made.groups(index, prior[index]).tolist() == expected
    assert max(expected) < len(made.evidence.shift) == 15
    assert set(expected) == set(range(15))


def formula(prior, c, epsilon=0.02):
    start = epsilon + (1 - 2 * epsilon) * prior
    moved = 1 / (1 + math.exp(-(math.log(start / (1 - start)) + c)))
    return min(1.0, max(0.0, (moved - epsilon) / (1 - 2 * epsilon)))


def test_weights_by_the_formula():
    made = refinement()
    shift = 3 * torch.randn(12, generator=torch.Generator().manual_seed(2))
    index = torch.arange(1001)
    group = made.groups(index, PRIORS)
    expected = [formula(float(p), float(shift[g])) for p, g in zip(PRIORS, group, strict=True)]
    assert made.refined(index, PRIORS, shift).tolist() == pytest.approx(expected, abs=1e-5)


def test_without_evidence_they_are_the_prior():
    made = refinement()
    weights = made.refined(torch.arange(1001), PRIORS, torch.zeros(12))
    torch.testing.assert_close(weights, PRIORS, rtol=0, atol=1e-6)
    assert weights.dtype == torch.float32
    assert weights.min() >= 0
    assert weights.max() <= 1


def test_weights_grow_with_the_evidence():
    made, index = refinement(), torch.arange(1001)
    ladder = torch.stack([made.refined(index, PRIORS, torch.full((12,), c)) for c in torch.linspace(-8, 8, 65)])
    steps = ladder.diff(dim=0)
    assert steps.min() >= 0
    assert steps.sum(0).min() > 0.9, "every weight can get almost anywhere"
    assert ladder.min() >= 0
    assert ladder.max() <= 1
    inside = (ladder[:-1] > 0) & (ladder[1:] < 1)
    assert steps[inside].min() > 0


@pytest.mark.parametrize("prior", [0.0, 1.0])
def test_even_a_certain_prior_can_be_overruled(prior):
    made = refinement()
    other = -1 if prior else 1
    moved = [
        float(made.refined(torch.tensor([0]), torch.tensor([prior]), torch.full((12,), other * c))) for c in (2, 4, 8)
    ]
    assert moved == pytest.approx([formula(prior, other * c) for c in (2, 4, 8)], abs=1e-6)
    assert abs(moved[1] - prior) > 0.4
    assert abs(moved[2] - prior) > 0.99
    for c in (2.0, 50.0, 500.0):  # more of what is known already changes nothing, and nothing overflows
        assert made.refined(torch.tensor([0]), torch.tensor([prior]), torch.full((12,), -other * c)) == prior


def test_evidence_moves_its_group_only():
    made, index = refinement(), torch.arange(1001)
    shift = torch.zeros(12)
    shift[3 * 2 + 1] = 4.0  # cluster 2, unclear
    weights = made.refined(index, PRIORS, shift)
    concerned = (index % 4 == 2) & (PRIORS >= 1 / 3) & (PRIORS < 2 / 3)
    torch.testing.assert_close(weights[~concerned], PRIORS[~concerned], rtol=0, atol=1e-6)
    assert (weights[concerned] > PRIORS[concerned] + 0.2).all()


def test_the_hypergradient_is_requested_in_every_lth_step():
    made = refinement(every=4)
    assert [step for step in range(13) if made.request(step) is OPTIONS] == [0, 4, 8, 12]
    assert made.request(3) is None


@pytest.mark.parametrize(("clusters", "every"), [(0, 5), (-3, 5), (20, 0), (20, -1)])
def test_numbers_that_count_something_are_at_least_one(clusters, every):
    with pytest.raises(OptionError, match=rf"at least 1 \(K={clusters}, L={every}\)\.$"):
        Refinement(clusters, every, OPTIONS)


def test_clusters_are_those_of_k_means(blobs):
    made = Refinement(3, 5, OPTIONS)
    rows, corner = blobs(60)
    made.cluster(rows, 7)
    assert torch.equal(made.cluster_of, kmeans(rows, 3, 7))
    for k in range(3):
        assert len(made.cluster_of[corner == k].unique()) == 1


@pytest.mark.parametrize("size", [1, 2, 5])
def test_a_pool_with_fewer_members_than_clusters(size, blobs):
    made = Refinement(20, 5, OPTIONS)
    made.cluster(blobs(size)[0], 0)
    weights = made.refined(torch.arange(size), torch.full((size,), 0.4), torch.zeros(60))
    assert weights.tolist() == pytest.approx([0.4] * size)


def test_more_clusters_than_a_byte_can_count(blobs):
    made = Refinement(300, 5, OPTIONS)
    made.cluster(blobs(400)[0], 0)
    groups = made.groups(torch.arange(400), torch.ones(400))
    assert groups.max() == 3 * int(made.cluster_of.max()) + 2 > 3 * 256
    assert len(groups.unique()) == 300


def test_new_clusters_have_no_past(blobs):
    made = Refinement(3, 5, OPTIONS)
    made.evidence.collect(torch.tensor([0, 1]), torch.tensor([1.0, -1.0]), torch.ones(2))
    assert made.evidence.sums.any()
    made.cluster(blobs(30)[0], 0)
    assert not made.evidence.sums.any()
    assert made.evidence.shift.tolist() == [0] * 9


def test_the_state_goes_into_a_new_object_and_on_from_there(blobs):
    made, other = Refinement(3, 5, OPTIONS), Refinement(3, 5, OPTIONS)
    made.cluster(blobs(30)[0], 0)
    for _ in range(20):
        made.evidence.collect(torch.tensor([0, 4, 8]), torch.tensor([1.0, -1.0, 0.1]), torch.ones(3))
    other.load_state_dict({key: value.clone() for key, value in made.state_dict().items()})
    index, prior = torch.arange(30), torch.rand(30, generator=torch.Generator().manual_seed(0))
    assert made.evidence.shift.any()
    assert torch.equal(
        made.refined(index, prior, made.evidence.shift), other.refined(index, prior, other.evidence.shift)
    )
