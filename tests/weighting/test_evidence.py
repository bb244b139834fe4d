"""Evidence: its sums from the whole list of observations; noise is no evidence, a persistent signal is."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from scipy.stats import norm

from wrssl.api import DataError
from wrssl.weighting.refinement import Evidence

GROUPS, BATCH = 6, 40


def draw(seed, updates, groups=GROUPS, batch=BATCH):
    """Groups, gradients of very different sizes, and what members count, for a number of updates."""
    rng = np.random.default_rng(seed)
    for _ in range(updates):
        # Every update leaves some groups out.
        present = rng.permutation(groups)[: rng.integers(1, groups + 1)]
        size = 10 ** rng.uniform(-3, 3)
        yield rng.choice(present, batch), size * rng.standard_normal(batch), rng.random(batch) * 2


def collect(evidence, group, gradient, counts):
    as_floats = (torch.from_numpy(np.asarray(values)).float() for values in (gradient, counts))
    evidence.collect(torch.from_numpy(np.asarray(group)), *as_floats)


class ByHand:
    """Every observation is kept; the sums are done at the end. Age counts later observations of the same group."""

    def __init__(self, groups):
        self.seen, self.centers = [[] for _ in range(groups)], []

    def collect(self, group, gradient, own):
        rms = math.sqrt(sum(g * g for g in gradient) / len(gradient))
        center = sum(c * g for c, g in zip(own, gradient, strict=True)) / sum(own) / rms
        half = self.helps() / 2
        for number in set(group.tolist()):
            values = [g for g, k in zip(gradient, group, strict=True) if k == number]
            self.seen[number].append(sum(values) / len(values) / rms - center - half)
        self.centers.append(center)

    def helps(self):
        """How much own members help, where that is sure."""
        ages = [0.99 ** (len(self.centers) - 1 - i) for i in range(len(self.centers))]
        if not ages or self.t_of(self.centers) >= -3:
            return 0.0
        return -sum(a * c for a, c in zip(ages, self.centers, strict=True)) / sum(ages)

    @staticmethod
    def t_of(observations):
        ages = range(len(observations) - 1, -1, -1)
        S = sum(0.99**age * d for age, d in zip(ages, observations, strict=True))
        V = sum(0.99 ** (2 * age) * d * d for age, d in zip(ages, observations, strict=True))
        return S / math.sqrt(V) if V > 0 else 0.0

    def t(self):
        return [self.t_of(observations) for observations in self.seen]

    def shift(self):
        def log_odds(t):
            return float(norm.logcdf(t) - norm.logcdf(-t))

        sure = log_odds(3.0)
        return [-math.copysign(min(8.0, max(0.0, log_odds(abs(t)) - sure)), t) for t in self.t()]


@pytest.mark.parametrize("common", [0.0, -0.3, 0.3])
@pytest.mark.parametrize("drift", [0.0, 0.5])
def test_the_formula_over_many_updates(drift, common):
    """With a drift in two groups, so that c is not 0 everywhere, and with something that all of them share."""
    evidence, expected = Evidence(GROUPS), ByHand(GROUPS)
    for number, (group, gradient, own) in enumerate(draw(1, 300)):
        drifts = common + drift * np.where(group == 2, 1, np.where(group == 4, -1, 0))
        gradient = gradient + np.abs(gradient).mean() * drifts
        collect(evidence, group, gradient, own)
        expected.collect(group, gradient, own)
        if number in (0, 1, 7, 299):
            assert evidence.t().tolist() == pytest.approx(expected.t(), abs=2e-4)
            assert evidence.shift.tolist() == pytest.approx(expected.shift(), abs=2e-3)
    if drift:
        assert evidence.shift[2] < -1
        assert evidence.shift[4] > 1
    assert (expected.helps() > 0) == (common < 0), "else one half of the formula was not there"


@pytest.mark.parametrize(("share", "sign"), [(1.0, 1), (0.9, 1), (0.75, 1), (0.0, -1), (0.2, -1), (-0.5, -1)])
def test_to_help_less_than_others_is_not_to_hurt(share, sign):
    """Own members help; a group with so much of it is raised above half of it and lowered below."""
    rng = np.random.default_rng(8)
    evidence = Evidence(10)
    for _ in range(400):
        group = rng.integers(0, 10, 200)
        helps = np.where(group == 7, share, 1.0)
        collect(evidence, group, 0.3 * rng.standard_normal(200) - helps, (group != 7).astype(float))
    assert sign * evidence.shift[7] > 1
    assert evidence.shift[:7].min() > 1, "the others are where they were, or above"


def test_a_group_in_the_middle_stays():
    """Nine groups, each worse than the one before, and none surely helps: the center does not follow the evidence."""
    rng = np.random.default_rng(9)
    evidence = Evidence(9)
    for _ in range(1000):
        group = rng.integers(0, 9, 100)
        collect(evidence, group, rng.standard_normal(100) + 0.2 * (group - 4), np.ones(100))
    assert (evidence.shift[:3] > 1).all()
    assert (evidence.shift[-3:] < -1).all()
    assert evidence.shift[4].abs() < 1


def test_nothing_is_known_at_first():
    evidence = Evidence(4)
    assert evidence.t().tolist() == [0] * 4
    assert evidence.shift.tolist() == [0] * 4


def test_one_observation_is_never_enough():
    """t is ±1 then, however large the gradient."""
    evidence = Evidence(2)
    collect(evidence, [0, 0, 1, 1], [1e6, 1e6, 0.0, 0.0], np.ones(4))
    assert evidence.t().abs().tolist() == pytest.approx([1, 1])
    assert evidence.shift.tolist() == [0, 0]


@pytest.mark.parametrize("kind", ["normal", "heavy tails", "skewed"])
def test_noise_moves_nothing_most_of_the_time(kind):
    """t is about standard normal: |t| > 3 in 0.3 % of all cases, whatever the distribution of one gradient."""
    rng = np.random.default_rng(2)
    evidence, quiet, spread = Evidence(20), [], []
    for number in range(1500):
        gradient = {
            "normal": rng.standard_normal(100),
            "heavy tails": rng.standard_cauchy(100),
            "skewed": rng.exponential(1, 100) ** 2,
        }[kind]
        collect(evidence, rng.integers(0, 20, 100), gradient, np.ones(100))
        if number >= 20:
            quiet.append((evidence.shift == 0).float().mean().item())
            spread.append(evidence.t().square().mean().item())
    assert np.mean(quiet) > 0.96
    assert np.mean(spread) == pytest.approx(1, abs=0.25)


@pytest.mark.parametrize("sign", [1, -1])
def test_a_persistent_signal_gets_the_right_sign(sign):
    """Where the validation loss rises with the weight (g > 0) the weight goes down, in four times the noise."""
    rng = np.random.default_rng(3)
    evidence = Evidence(5)
    for _ in range(200):
        group = rng.integers(0, 5, 100)
        collect(evidence, group, rng.standard_normal(100) + 0.25 * sign * (group == 3), np.ones(100))
    assert -sign * evidence.shift[3] > 1
    assert -sign * evidence.shift[3] == evidence.shift.abs().max()


def test_a_group_whose_gradients_change_sign_follows_in_the_end():
    evidence = Evidence(2)
    rng = np.random.default_rng(4)
    shifts = []
    for sign in (1, -1):
        for _ in range(300):
            group = rng.integers(0, 2, 60)
            collect(evidence, group, rng.standard_normal(60) + sign * (group == 0), np.ones(60))
        shifts.append(evidence.shift.clone())
    assert shifts[0][0] < -1
    assert shifts[0][1] > 1
    assert shifts[1][0] > 1
    assert shifts[1][1] < -1


def test_the_scale_of_an_update_does_not_matter():
    one, other = Evidence(GROUPS), Evidence(GROUPS)
    rng = np.random.default_rng(5)
    for group, gradient, counts in draw(5, 80):
        drifted = gradient + np.abs(gradient).mean() * (group == 1)
        collect(one, group, drifted, counts)
        collect(other, group, drifted * 10 ** rng.uniform(-9, 9), counts * 7)
    assert one.shift.abs().max() > 0.5
    torch.testing.assert_close(one.shift, other.shift, rtol=1e-3, atol=1e-3)


def test_what_all_groups_share_is_no_evidence_about_any():
    """The amount of regularization is a matter of the coefficient: a constant is subtracted, weighted by the prior."""
    evidence, shifted = Evidence(3), Evidence(2)
    collect(evidence, [0, 1, 2, 2], np.full(4, 5.0), np.array([1.0, 0.5, 0.0, 2.0]))
    assert evidence.t().abs().max() < 1e-3
    # Two members that count nothing do not move the center: the others are at it.
    collect(shifted, [0, 0, 1, 1], np.array([1.0, 1.0, 9.0, 9.0]), np.array([1.0, 1.0, 0.0, 0.0]))
    assert shifted.t().tolist() == pytest.approx([0, 1])


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_what_is_not_finite_counts_as_nothing(bad):
    one, other = Evidence(GROUPS), Evidence(GROUPS)
    for number, (group, gradient, counts) in enumerate(draw(6, 30)):
        spoiled, mended = gradient.copy(), gradient.copy()
        spoiled[number % BATCH], mended[number % BATCH] = bad, 0
        collect(one, group, spoiled, counts)
        collect(other, group, mended, counts)
    assert torch.isfinite(one.sums).all()
    assert torch.equal(one.sums, other.sums)
    assert torch.equal(one.shift, other.shift)


@pytest.mark.parametrize("value", [0.0, np.nan])
def test_an_update_without_a_gradient_is_none(value):
    evidence = Evidence(GROUPS)
    for group, gradient, counts in draw(7, 20):
        collect(evidence, group, gradient + (group == 0) * np.abs(gradient).max(), counts)
    sums, shift = evidence.sums.clone(), evidence.shift.clone()
    assert shift.abs().max() > 0
    collect(evidence, np.arange(BATCH) % GROUPS, np.full(BATCH, value), np.ones(BATCH))
    assert torch.equal(evidence.sums, sums)
    assert torch.equal(evidence.shift, shift)


def test_a_batch_of_prior_weight_zero_is_evidence_all_the_same():
    evidence = Evidence(2)
    collect(evidence, [0, 0, 1, 1], [1.0, 1.0, -1.0, -1.0], np.zeros(4))
    assert evidence.t().tolist() == pytest.approx([1, -1])


def test_a_group_that_is_absent_stays_as_it_is():
    evidence = Evidence(3)
    for _ in range(30):
        collect(evidence, [0, 0, 1, 1], [1.0, 1.2, -1.0, -1.1], np.ones(4))
    before = evidence.sums[:, 0].clone(), evidence.shift[0].clone()
    collect(evidence, [1, 1, 2, 2], [1.0, 2.0, -1.0, 3.0], np.ones(4))
    assert torch.equal(evidence.sums[:, 0], before[0])
    assert evidence.shift[0] == before[1] != 0


def test_a_shift_that_was_handed_out_does_not_change():
    """Visits remember the evidence that they followed."""
    evidence = Evidence(2)
    kept = evidence.shift
    for _ in range(30):
        collect(evidence, [0, 1], [1.0, -1.0], np.ones(2))
    assert kept.tolist() == [0, 0]
    assert evidence.shift.abs().min() > 0


def test_the_state_goes_into_a_new_object_and_on_from_there():
    evidence, other = Evidence(GROUPS), Evidence(GROUPS)
    updates = list(draw(8, 40))
    for update in updates[:20]:
        collect(evidence, *update)
    other.load_state_dict({key: value.clone() for key, value in evidence.state_dict().items()})
    for update in updates[20:]:
        collect(evidence, *update)
        collect(other, *update)
    assert torch.equal(evidence.sums, other.sums)
    assert torch.equal(evidence.shift, other.shift)


def test_a_loaded_state_is_a_copy():
    state = {"evidence": torch.ones(3, 4), "shift": torch.ones(3)}
    evidence = Evidence(3)
    evidence.load_state_dict(state)
    collect(evidence, [0, 1, 2], [1.0, -1.0, 0.5], np.ones(3))
    assert state["evidence"].eq(1).all()
    assert state["shift"].eq(1).all()


def test_a_state_of_an_earlier_version_is_refused():
    with pytest.raises(DataError, match=r"^This state was stored by another version of wrssl"):
        Evidence(3).load_state_dict({"evidence": torch.zeros(2, 3), "shift": torch.zeros(3)})
