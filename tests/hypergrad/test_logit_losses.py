"""Check 1: every closed form in logit space against autograd, to 1e-12; and a few by hand."""

from __future__ import annotations

import math

import pytest
import torch
import torch.nn.functional as F

from wrssl.api import OptionError
from wrssl.hypergrad import LOSSES, LogitLoss, automatic, logit_loss

REFERENCE = {
    "ce": lambda z, t: -(t * z.log_softmax(1)).sum(1),
    "mse": lambda z, t: F.mse_loss(z.softmax(1), t, reduction="none").mean(1),
    "kl": lambda z, t: (z.softmax(1) * (z.log_softmax(1) - t.log())).sum(1),
    "entropy": lambda z, t: torch.distributions.Categorical(logits=z).entropy(),
}
B, C = 7, 4


@pytest.fixture(params=list(REFERENCE))
def case(request, randn):
    z, u, t = 2.0 * randn(B, C, seed=1), randn(B, C, seed=2), randn(B, C, seed=3).softmax(1)
    if request.param == "ce":
        t = t * torch.tensor([0.0, 10.0, 1.0, 1.0, 0.5, 2.0, 1.0], dtype=t.dtype).unsqueeze(1)  # rows sum to any m
    return request.param, z, t, u


def close(a, b):
    torch.testing.assert_close(a, b, rtol=1e-12, atol=1e-12)


def test_value_gradient_and_hessian_equal_autograd(case):
    name, z, t, u = case
    loss, leaf = LOSSES[name], z.clone().requires_grad_()
    r = REFERENCE[name](leaf, t)
    (gradient,) = torch.autograd.grad(r.sum(), leaf, create_graph=True)
    (product,) = torch.autograd.grad((gradient * u).sum(), leaf)
    close(loss.value(z, t), r.detach())
    close(loss.gradient(z, t), gradient.detach())
    close(loss.hessian(z, t)(u), product)


def test_an_example_by_itself_has_the_numbers_of_its_row(case):
    name, z, t, u = case
    loss = LOSSES[name]
    for i in range(B):
        close(loss.value(z[i], t[i]), loss.value(z, t)[i])
        close(loss.gradient(z[i], t[i]), loss.gradient(z, t)[i])
        close(loss.hessian(z[i], t[i])(u[i]), torch.func.jacrev(torch.func.grad(loss.value))(z[i], t[i]) @ u[i])
        close(loss.gauss_newton(z[i], t[i])(u[i]), loss.gauss_newton(z, t)(u)[i])
        if loss.softmax_multiple(t) is not None:
            close(loss.softmax_multiple(t[i]), loss.softmax_multiple(t)[i])


def test_automatic_equals_the_closed_form(case):
    name, z, t, u = case
    auto, closed = automatic(REFERENCE[name]), LOSSES[name]
    close(auto.value(z, t), closed.value(z, t))
    close(auto.gradient(z, t), closed.gradient(z, t))
    close(auto.hessian(z, t)(u), closed.hessian(z, t)(u))


@pytest.mark.parametrize("derive", [lambda name: LOSSES[name], lambda name: automatic(REFERENCE[name])])
def test_gauss_newton_is_symmetric_and_positive_semidefinite(case, derive):
    name, z, t, _ = case
    product = derive(name).gauss_newton(z, t)
    blocks = torch.stack([product(e.expand_as(z)) for e in torch.eye(C, dtype=z.dtype)], -1)
    close(blocks, blocks.mT)
    assert torch.linalg.eigvalsh(blocks).min() > -1e-12


def test_automatic_gauss_newton_is_the_hessian_where_that_is_positive(randn):
    z, t, u = randn(B, C, seed=1), randn(B, C, seed=3).softmax(1), randn(B, C, seed=2)
    close(automatic(REFERENCE["ce"]).gauss_newton(z, t)(u), LOSSES["ce"].hessian(z, t)(u))


@pytest.mark.parametrize("name", ["mse", "kl"])
def test_gauss_newton_is_the_hessian_where_prediction_and_target_agree(name, randn):
    z, u = randn(B, C, seed=1), randn(B, C, seed=2)
    close(LOSSES[name].gauss_newton(z, z.softmax(1))(u), LOSSES[name].hessian(z, z.softmax(1))(u))


def test_by_hand():
    # Two classes, z = (log 3, 0), so p = (3/4, 1/4), S = 3/16 [[1, −1], [−1, 1]]; target class 0.
    z, t = torch.tensor([[math.log(3.0), 0.0]], dtype=torch.float64), torch.tensor([[1.0, 0.0]], dtype=torch.float64)
    u = torch.tensor([[1.0, 0.0]], dtype=torch.float64)
    ce, mse = LOSSES["ce"], LOSSES["mse"]
    close(ce.value(z, t), torch.tensor([math.log(4.0 / 3.0)], dtype=torch.float64))
    close(ce.gradient(z, t), torch.tensor([[-0.25, 0.25]], dtype=torch.float64))
    close(ce.hessian(z, t)(u), torch.tensor([[3 / 16, -3 / 16]], dtype=torch.float64))
    close(mse.value(z, t), torch.tensor([1 / 16], dtype=torch.float64))
    # (2/C) S (p − t) = S (−1/4, 1/4) = 3/16 · (−1/2, 1/2)
    close(mse.gradient(z, t), torch.tensor([[-3 / 32, 3 / 32]], dtype=torch.float64))
    close(LOSSES["entropy"].gradient(z, t), -3 / 16 * math.log(3.0) * torch.tensor([[1.0, -1.0]], dtype=torch.float64))


def test_a_target_of_zero_keeps_the_reverse_kl_finite():
    z, t = torch.tensor([[1.0, 2.0, 3.0]]), torch.tensor([[1.0, 0.0, 0.0]])
    for value in (LOSSES["kl"].value(z, t), LOSSES["kl"].gradient(z, t), LOSSES["kl"].hessian(z, t)(z)):
        assert torch.isfinite(value).all()


def test_unknown_loss_names_the_known_ones():
    with pytest.raises(OptionError, match="ce, mse, kl, entropy"):
        logit_loss("hinge")


def test_a_loss_without_all_its_derivatives_cannot_be_made():
    assert LogitLoss.__abstractmethods__ == {"value", "gradient", "hessian", "gauss_newton"}
    for missing in LogitLoss.__abstractmethods__:
        given = {name: (lambda *_: None) for name in LogitLoss.__abstractmethods__ - {missing}}
        with pytest.raises(TypeError, match=missing):
            type("Half", (LogitLoss,), given)()
