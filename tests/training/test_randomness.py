"""A network that draws random numbers of its own gets them from the run's seed; torch's generator stays as it is."""

from __future__ import annotations

import pytest
import torch
from torch import nn

import wrssl
from wrssl.api import Method, Pass, Views
from wrssl.registry import METHODS, register_method

STEPS = 3


def last(size):
    return nn.Linear(size, 2)


class Recurrent(nn.Module):
    """Dropout between two recurrent layers is an option of the layer, not a layer."""

    def __init__(self):
        super().__init__()
        self.body, self.head = nn.LSTM(2, 4, num_layers=2, dropout=0.1, batch_first=True), last(4)

    def forward(self, x):
        return self.head(self.body(x.unsqueeze(1))[0][:, -1])


NETWORKS = {
    "dropout": (lambda: nn.Sequential(nn.Linear(2, 8), nn.ReLU(), nn.Dropout(0.5), last(8)), True),
    "random slope": (lambda: nn.Sequential(nn.Linear(2, 8), nn.RReLU(), last(8)), True),
    "recurrent": (Recurrent, True),
    "none": (lambda: nn.Sequential(nn.Linear(2, 8), nn.BatchNorm1d(8), nn.ReLU(), last(8)), False),
}


@pytest.fixture
def seeds():
    """What torch's generator was seeded with in each step of the method ``spy``."""
    found = []
    with METHODS.isolated():

        @register_method("spy")
        class Spy(Method):
            summary = "for tests"

            def views(self, net, x, context):
                found.append(torch.initial_seed())
                features = net.features(x, Pass.UNLABELED)
                return Views(x, Pass.UNLABELED, features, features.new_zeros(len(x), 0))

            def loss(self, logits, targets):
                return logits.square().sum(1)

        yield found


@pytest.fixture
def network(request):
    make, draws = NETWORKS[request.param]
    with torch.random.fork_rng():
        torch.manual_seed(0)
        return make(), draws


@pytest.mark.parametrize("network", NETWORKS, indirect=True)
def test_a_network_that_draws_is_seeded_in_every_step(network, moons, seeds, global_rng_untouched):
    model, draws = network
    outside = torch.initial_seed()
    result = wrssl.fit(moons, model, "spy", "none", steps=STEPS, progress=False)
    assert len(seeds) == STEPS
    assert len(set(seeds)) == (STEPS if draws else 1)
    assert (outside in seeds) != draws
    with torch.random.fork_rng():
        torch.manual_seed(outside + 1)  # another state outside
        again = wrssl.fit(moons, model, "spy", "none", steps=STEPS, progress=False)
    assert (seeds[:STEPS] == seeds[STEPS:]) == draws
    for one, two in zip(result.model.state_dict().values(), again.model.state_dict().values(), strict=True):
        assert torch.equal(one, two)


def test_another_seed_of_the_run_is_another_dropout(moons, seeds):
    for seed in (0, 1):
        model = nn.Sequential(nn.Linear(2, 8), nn.Dropout(0.5), last(8))
        wrssl.fit(moons, model, "spy", "none", steps=STEPS, seed=seed, progress=False)
    assert len(set(seeds)) == 2 * STEPS
