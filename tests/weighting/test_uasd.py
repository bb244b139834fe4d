"""UASD: accumulated predictions and their threshold, simulated a second time in NumPy."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from wrssl.api import Pass, Signal
from wrssl.registry import WEIGHTINGS
from wrssl.weighting.uasd import FIRST_THRESHOLD, Accumulated

KNOWN = 12
HALF = 1.5e-3  # a few roundings to half precision, of numbers below 1


def started(make_pool):
    weighting = WEIGHTINGS.create("uasd")
    weighting.setup(make_pool(reference=KNOWN))
    return weighting


def confident(*values, classes=10):
    """Rows whose largest probability is the value."""
    rows = torch.tensor([[(1 - v) / (classes - 1)] * classes for v in values])
    rows[:, 0] = torch.tensor(values)
    return rows


def visit(weighting, index, p, reference, p_known):
    index, reference = torch.as_tensor(index), torch.as_tensor(reference, dtype=torch.int64)
    p, p_known = (torch.as_tensor(rows, dtype=torch.float32) for rows in (p, p_known))
    weighting.update(index, Signal(0, torch.ones(len(index)), p, None, (reference, p_known)))


def test_the_formula_over_several_steps(make_pool):
    """q = the mean of the predictions, c = max q, τ = the mean of c over the visited examples, w = 1[c ≥ τ]."""
    weighting, rng, decided = started(make_pool), np.random.default_rng(0), []
    sums, visits, w = {}, {}, np.ones(30)
    for name, size in (("members", 30), ("known", KNOWN)):
        sums[name], visits[name] = np.zeros((size, 10)), np.zeros(size)

    def softmax(z):
        return np.exp(z) / np.exp(z).sum(1, keepdims=True)

    for _ in range(15):
        index, reference = rng.permutation(25)[:8], rng.permutation(KNOWN)[:5]
        p, p_known = softmax(2 * rng.normal(size=(8, 10))), softmax(2 * rng.normal(size=(5, 10)))
        for name, rows, new in (("members", index, p), ("known", reference, p_known)):
            sums[name][rows] += new
            visits[name][rows] += 1
        q = {name: sums[name] / np.maximum(visits[name], 1)[:, None] for name in sums}
        c, tau = q["members"][index].max(1), q["known"].max(1)[visits["known"] > 0].mean()
        visit(weighting, index, p, reference, p_known)

        assert weighting.known.confidence() == pytest.approx(tau, abs=HALF)
        for name, table in (("members", weighting.members), ("known", weighting.known)):
            assert np.array_equal(table.visits.numpy(), visits[name])
            np.testing.assert_allclose(table.mean.float().numpy(), q[name], rtol=0, atol=HALF)
        clear = np.abs(c - tau) > 2 * HALF
        w[index[clear]] = c[clear] >= tau
        w[index[~clear]] = weighting.batch(torch.as_tensor(index[~clear])).weight.numpy()
        assert np.array_equal(weighting.batch(torch.arange(30)).weight.numpy(), w)
        decided += list(c[clear] >= tau)
    assert len(decided) > 100
    assert 20 < sum(decided) < len(decided) - 20
    assert visits["members"].max() >= 4
    assert w[25:].tolist() == [1.0] * 5  # never visited


def test_the_decision_is_about_the_average_and_not_about_the_last_prediction(make_pool):
    weighting = started(make_pool)
    visit(weighting, [3, 4], confident(0.9, 0.3), [0], confident(0.7))
    assert weighting.batch(torch.tensor([3, 4])).weight.tolist() == [1.0, 0.0]
    visit(weighting, [3, 4], confident(0.6, 0.95), [0], confident(0.7))  # averages 0.75 and 0.625
    assert weighting.batch(torch.tensor([3, 4])).weight.tolist() == [1.0, 0.0]


def test_predictions_that_change_are_not_confident_on_average(make_pool):
    weighting, one, other = started(make_pool), confident(0.98), confident(0.98).flip(1)
    visit(weighting, [3], one, [0], confident(0.7))
    assert weighting.batch(torch.tensor([3])).weight.item() == 1
    visit(weighting, [3], other, [0], confident(0.7))
    assert weighting.batch(torch.tensor([3])).weight.item() == 0


def test_before_any_reference_the_threshold_is_a_number(make_pool):
    weighting = started(make_pool)
    assert weighting.known.confidence() == FIRST_THRESHOLD == 0.9
    visit(weighting, [0, 1], confident(0.92, 0.88), [], torch.zeros(0, 10))
    assert weighting.batch(torch.arange(3)).weight.tolist() == [1.0, 0.0, 1.0]


@pytest.mark.parametrize(
    ("reference", "member"), [(0.6, 0.61), (0.9, 0.9), (0.7, 0.7), (0.9998, 0.9999), (0.99999, 0.99999)]
)
def test_a_member_as_confident_as_the_reference_counts(reference, member, make_pool):
    """Also where all are nearly certain, which half precision cannot tell from 1."""
    weighting = started(make_pool)
    visit(weighting, [5], confident(member), [0, 1], confident(reference, reference))
    assert weighting.batch(torch.tensor([5])).weight.item() == 1


def test_a_member_that_is_named_twice_counts_once():
    table = Accumulated(4, 3)
    table.add(torch.tensor([2, 2]), confident(0.8, 0.8, classes=3))
    assert table.visits.tolist() == [0, 0, 1, 0]
    assert table.mean[2].tolist() == pytest.approx([0.8, 0.1, 0.1], abs=1e-3)


def test_a_step_shows_it_the_validation_examples(one_step):
    lab = one_step("uasd")
    theta, batch = lab.theta(), lab.batch(2)
    lab.take(2)
    table = lab.weighting.known
    assert table.visits.nonzero().flatten().tolist() == batch.reference.tolist() == list(range(2, 9))
    want = lab.logits(theta, batch.validation[0]).softmax(1).detach()
    torch.testing.assert_close(table.mean[batch.reference].double(), want, rtol=0, atol=5e-4)
    want = lab.logits(theta, batch.x_u).softmax(1).detach()
    torch.testing.assert_close(lab.weighting.members.mean[batch.index].double(), want, rtol=0, atol=5e-4)
    assert lab.net.images[Pass.VALIDATION] == 7


def test_without_a_validation_set_the_labeled_examples_set_the_threshold(one_step):
    lab = one_step("uasd")
    theta, batch = lab.theta(), lab.batch(2, validation=False)
    lab.take(2, validation=False)
    table = lab.weighting.known
    assert table.visits.nonzero().flatten().tolist() == batch.reference.tolist() == list(range(2, 8))
    want = lab.logits(theta, batch.x_l).softmax(1).detach()
    torch.testing.assert_close(table.mean[batch.reference].double(), want, rtol=0, atol=5e-4)
    assert lab.net.images[Pass.VALIDATION] == 0


def test_the_new_decision_counts_in_the_same_step(one_step):
    lab = one_step("uasd")
    for number in range(3):
        theta, index = lab.theta(), lab.batch(number).index
        lab.take(number)
        w = lab.weighting.batch(index).weight
        assert 0 < w.sum() < 8
        for p, q in zip(lab.net.module.parameters(), lab.trained(theta, number, w), strict=True):
            torch.testing.assert_close(p.detach(), q, rtol=0, atol=1e-12)


def test_the_state_goes_into_a_new_object_and_on_from_there(make_pool):
    one, other = started(make_pool), started(make_pool)
    visit(one, [1, 2, 3], confident(0.9, 0.5, 0.7), [0, 4], confident(0.8, 0.6))
    other.load_state_dict({name: value.clone() for name, value in one.state_dict().items()})
    assert torch.equal(one.batch(torch.arange(30)).weight, other.batch(torch.arange(30)).weight)
    for weighting in (one, other):
        visit(weighting, [2, 3, 9], confident(0.95, 0.75, 0.5), [0, 5], confident(0.9, 0.7))
    mine, theirs = one.state_dict(), other.state_dict()
    assert mine.keys() == theirs.keys()
    assert all(torch.equal(mine[name], theirs[name]) for name in mine)
    assert other.members.visits[2] == 2
