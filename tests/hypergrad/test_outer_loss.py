"""The outer losses: closed forms against autograd, the sharpness against a search, and why the error is used."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from scipy.optimize import minimize_scalar

from wrssl.api import HypergradientRequest, OptionError
from wrssl.hypergrad import check_head, check_request, head_hypergradient
from wrssl.hypergrad.outer import RANGE, OuterLoss, best_sharpness


def close(a, b, tolerance=1e-12):
    torch.testing.assert_close(a, b, rtol=tolerance, atol=tolerance)


def rows(randn, scale=1.0, n=40, C=4, seed=3):
    """Logits whose largest entry is usually that of the class."""
    y = F.one_hot(torch.arange(n) % C, C).double()
    return scale * (randn(n, C, seed=seed) + 1.2 * y), y


@pytest.mark.parametrize("name", ["ce", "error"])
def test_value_and_gradient_by_autograd(name, randn):
    z, y = rows(randn, 2.0)
    loss, there = OuterLoss(name, lambda: z, y), randn(40, 4, seed=9).requires_grad_()
    p = (loss.sharpness * there).softmax(1)[y.bool()]
    expected = (1 - p).mean() if name == "error" else F.cross_entropy(there, y.argmax(1))
    close(loss.value(there.detach(), y), expected.detach())
    close(loss.gradient(there.detach(), y), torch.autograd.grad(expected, there)[0])


@pytest.mark.parametrize("scale", [0.03, 0.3, 1.0, 3.0, 20.0])
def test_the_sharpness_is_the_minimum_of_a_search(scale, randn):
    z, y = rows(randn, scale)
    found = minimize_scalar(
        lambda log_beta: float(F.cross_entropy(z * float(torch.tensor(log_beta).exp()), y.argmax(1))),
        bounds=(-4.6, 4.6), method="bounded", options={"xatol": 1e-9},
    )  # fmt: skip
    assert float(best_sharpness(z, y).log()) == pytest.approx(found.x, abs=1e-5)


def test_an_overall_factor_of_the_logits_has_no_effect(randn):
    """The expected error stays the same, and its gradient scales inversely with the logits."""
    z, y = rows(randn)
    one, other = OuterLoss("error", lambda: z, y), OuterLoss("error", lambda: 7 * z, y)
    close(one.value(z, y), other.value(7 * z, y), 1e-9)
    close(one.gradient(z, y), 7 * other.gradient(7 * z, y), 1e-9)
    sure, usual = (F.cross_entropy(scale * z, y.argmax(1)) for scale in (7, 1))
    assert sure > 1.5 * usual, "cross-entropy depends on the factor"


@pytest.mark.parametrize(
    ("z", "lowest", "highest"),
    [
        (lambda y: 5 * y, 2, RANGE[1]),  # all correct: the sharper the better
        (lambda y: -5 * y, 0, 0.02),  # all wrong
        (lambda y: 0 * y, 1, 1),  # no sharpness is better than another
        (lambda y: torch.full_like(y, torch.nan), 1, 1),
    ],
    ids=["right", "wrong", "nothing", "nan"],
)
def test_rows_without_a_best_sharpness(z, lowest, highest):
    y = F.one_hot(torch.arange(12) % 3, 3).double()
    assert lowest <= float(best_sharpness(z(y), y)) <= highest


@pytest.mark.parametrize("seed", range(3))
def test_the_hypergradient_of_the_error_equals_retraining(seed, head):
    """An exact solver at the trained head against finite differences, in float64."""
    result = check_head(head(seed=seed, outer_loss="error"), "exact")
    assert result.relative_error < 1e-4
    assert result.cosine > 0.9999


def test_problem_and_function_pass_it_on(head_arguments, head_problem):
    arguments = head_arguments()
    problem = head_problem(*arguments, outer_loss="error", ridge=0.1)
    theta = problem.start().requires_grad_()
    h_v, y_v = arguments[-2:]
    z = h_v @ theta[:, :-1].T + theta[:, -1]
    sharpness = best_sharpness(z.detach(), F.one_hot(y_v, 3).double())
    loss = 1 - (sharpness * z).softmax(1).gather(1, y_v[:, None]).mean()
    close(problem.validation_loss(theta.detach()), loss.detach())
    close(problem.validation_gradient(theta.detach()), torch.autograd.grad(loss, theta)[0])
    by_function = {
        name: head_hypergradient(*arguments, ridge=0.1, outer_loss=name) for name in ("ce", "error")
    }  # fmt: skip
    assert not torch.allclose(by_function["ce"], by_function["error"], rtol=0.1)
    close(head_hypergradient(*arguments, ridge=0.1), by_function["ce"])


def test_confidence_is_no_evidence():
    """An overconfident network and two members: one confirms its predictions, the other uses an irrelevant feature.

    Cross-entropy prefers less weight on the member that confirms, since confidence costs it more than it gains; the
    expected error does not. Two classes along one feature; one in five validation examples lies on the wrong side.
    """
    W = torch.tensor([[6.0, 0.0], [-6.0, 0.0]], dtype=torch.float64)
    h_v = torch.tensor([[1.0, 0.0]] * 4 + [[-1.0, 0.0]] + [[-1.0, 0.0]] * 4 + [[1.0, 0.0]], dtype=torch.float64)
    y_v = torch.tensor([0] * 5 + [1] * 5)
    h_l, y_l = torch.tensor([[1.0, 0.0], [-1.0, 0.0]], dtype=torch.float64), torch.tensor([0, 1])
    h_u = torch.tensor([[0.1, 0.0], [0.0, 0.1]], dtype=torch.float64)  # confirms class 0; has another feature only
    targets = torch.tensor([[1.0, 0.0], [1.0, 0.0]], dtype=torch.float64)
    g = {
        name: head_hypergradient(
            W, torch.zeros(2, dtype=torch.float64), h_l, y_l, h_u, targets, torch.ones(2), h_v, y_v, ridge=1.0,
            outer_loss=name,
        )
        for name in ("ce", "error")
    }  # fmt: skip
    assert g["ce"][0] > g["ce"][1] + 1e-3, "more weight on it would raise the cross-entropy"
    assert g["error"][0] < g["error"][1] - 1e-6, "and lower the expected error"


@pytest.mark.parametrize("bad", [{"outer_loss": "accuracy"}, {"outer_loss": "e"}, {"outer_loss": ""}])
def test_names_that_do_not_exist_are_refused(bad, head):
    with pytest.raises(OptionError, match=r"^outer_loss must be one of ce, error, not "):
        head(**bad)
    with pytest.raises(OptionError, match=r"^outer_loss must be one of ce, error, not "):
        check_request(HypergradientRequest(**bad))


def test_the_error_is_for_the_last_layer_only():
    with pytest.raises(OptionError, match=r'^outer_loss="error" goes with scope="head" only\.$'):
        check_request(HypergradientRequest(scope="network", outer_loss="error"))
    request = HypergradientRequest(scope="network")
    assert check_request(request).outer_loss == "ce"
