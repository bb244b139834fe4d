"""Streams depend on seed, name and step, and on nothing else."""

from __future__ import annotations

import torch
from torch import nn
from wrssl.training.randomness import is_stochastic, private_global, stream, stream_seed


def test_streams_are_functions_of_their_arguments():
    assert stream_seed(0, "a", 1) == stream_seed(0, "a", 1)
    assert len({stream_seed(s, n, t) for s in (0, 1) for n in ("a", "b") for t in (0, 1)}) == 8
    assert torch.equal(torch.rand(3, generator=stream(5, "x")), torch.rand(3, generator=stream(5, "x")))


def test_dropout_uses_a_private_copy_of_the_global_generator(global_rng_untouched):
    draws = []
    for _ in range(2):
        with private_global(3, True):
            draws.append(torch.rand(4))
    assert torch.equal(*draws)


def test_models_that_draw_random_numbers_are_recognised():
    assert is_stochastic(nn.Sequential(nn.Linear(2, 2), nn.Dropout(0.5)))
    assert is_stochastic(nn.LSTM(2, 2, num_layers=2, dropout=0.1))
    assert not is_stochastic(nn.Sequential(nn.Linear(2, 2), nn.BatchNorm1d(2)))
