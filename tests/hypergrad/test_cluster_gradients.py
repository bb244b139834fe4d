"""Check 8: the gradient of cluster weights is the segment sum of the example gradients."""

from __future__ import annotations

import torch

from wrssl.hypergrad import implicit_hypergradient, retrained_gradient, segment_mean, segment_sum, stationary_point


def test_segment_sum_is_autograd_through_the_table(randn):
    cluster, per_cluster = torch.arange(30) * 7 % 5, randn(6, seed=1).requires_grad_()
    g = randn(30, seed=2)
    (truth,) = torch.autograd.grad((per_cluster[cluster] * g).sum(), per_cluster)
    torch.testing.assert_close(segment_sum(g, cluster, 6), truth)
    assert segment_sum(g, cluster, 6)[5] == 0


def test_cluster_gradient_equals_moving_the_cluster_weight_and_retraining(head):
    cluster, table = torch.arange(30) % 3, torch.tensor([0.3, 0.9, 0.6], dtype=torch.float64)
    problem = head().with_weights(table[cluster])
    problem = problem.at(stationary_point(problem))
    g = segment_sum(implicit_hypergradient(problem, "exact").gradient, cluster, 3)
    for k in range(3):
        losses = []
        for change in (1e-4, -1e-4):
            moved = problem.with_weights((table + change * (torch.arange(3) == k))[cluster])
            losses.append(moved.validation_loss(stationary_point(moved)))
        truth = (losses[0] - losses[1]) / 2e-4
        torch.testing.assert_close(g[k], truth, rtol=1e-6, atol=1e-10)
    members = retrained_gradient(problem, range(0, 30, 3), theta=problem.start())
    torch.testing.assert_close(g[0], members.sum(), rtol=1e-6, atol=1e-10)


def test_segment_mean_by_hand():
    mean, counts = segment_mean(torch.tensor([1.0, 3.0, 5.0]), torch.tensor([2, 2, 0]), 4)
    assert mean.tolist() == [5.0, 0.0, 2.0, 0.0]
    assert counts.tolist() == [1.0, 0.0, 2.0, 0.0]
