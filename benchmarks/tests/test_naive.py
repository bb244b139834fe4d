"""The naive loop is a fair rival only if it computes what the library computes."""

from __future__ import annotations

import copy

import pytest
import torch
import torch.nn.functional as F

from wrssl.models import build_model
from wrssl.registry import METHODS
from wrssl_bench.against_torch import EPS, NaiveVAT, divergence, on_unit_sphere
from wrssl_bench.steps import images, make_trainer


def test_divergence_and_sphere(generator):
    a, b = torch.randn(2, 5, 3, generator=generator, dtype=torch.float64)
    p, q = a.softmax(1), b.softmax(1)
    torch.testing.assert_close(divergence(a, b), (p * (p / q).log()).sum(1).mean(), rtol=1e-12, atol=1e-14)
    lengths = on_unit_sphere(torch.randn(4, 1, 3, 3, generator=generator)).flatten(1).norm(dim=1)
    torch.testing.assert_close(lengths, torch.ones(4))


def test_same_numbers_as_the_library():
    method, scenario = METHODS.create("vat"), images(120)
    loop = NaiveVAT(scenario, build_model("lenet", (1, 28, 28), 10, torch.Generator().manual_seed(0)), 8)
    assert scenario.vat_epsilon == pytest.approx(EPS)
    assert (method.xi, method.coef, method.lr) == (0.1, 0.3, loop.optimizer.param_groups[0]["lr"])


def test_the_unlabeled_loss_is_that_of_the_library(generator):
    method = METHODS.create("vat")
    clean, moved = torch.randn(2, 8, 10, generator=generator)
    torch.testing.assert_close(divergence(moved, clean), method.loss(moved, clean.softmax(1)).mean())


def test_both_learn_the_labels_at_the_same_pace():
    """Fifteen steps on one small problem: different random numbers, about the same labeled loss."""
    scenario = images(120)
    trainer = make_trainer(scenario, batch_size=25)
    model = copy.deepcopy(trainer.net.module)
    loop = NaiveVAT(scenario, model, 25)
    for step in range(15):
        trainer.step(step)
        loop()
    x, y = scenario.labeled
    with torch.no_grad():
        naive, ours = (F.cross_entropy(m.train()(x), y).item() for m in (model, trainer.net.module))
    assert naive == pytest.approx(ours, rel=0.35)
    assert max(naive, ours) < 1.5  # ln 10 = 2.3 at the start
