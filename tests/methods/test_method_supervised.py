"""Supervised learning: a pool that counts for nothing."""

from __future__ import annotations

import pytest
import torch

from wrssl.api import OptionError
from wrssl.methods import METHODS


def test_every_loss_is_zero(make_net, x, ref, make_context):
    net, method = make_net(), METHODS.create("supervised")
    views = method.views(net, x, make_context(noise=0.5))
    ref.close(views.features, ref.Net(net.module).features(x.numpy()))
    assert views.inputs is x
    assert views.targets.shape == (9, 0)
    r = method.loss(net.head(views.features), views.targets)
    assert torch.equal(r, torch.zeros(9, dtype=torch.float64))


def test_it_has_no_options():
    with pytest.raises(OptionError, match=r"has no option 'coef'; its options are: none\."):
        METHODS.create("supervised", {"coef": 1.0})
