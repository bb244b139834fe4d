"""A network from outside the package, by name: ``model="two-layers"``, or ``"two-layers-nobn"`` without batch norm."""

import math

from torch import nn

import wrssl


@wrssl.register_model("two-layers")
def two_layers(input_shape, num_classes, batch_norm=True):
    """Any module that ends with nn.Linear; its parameters follow from the run's seed."""
    return nn.Sequential(
        nn.Flatten(),
        nn.Linear(math.prod(input_shape), 64),
        nn.BatchNorm1d(64) if batch_norm else nn.Identity(),
        nn.ReLU(),
        nn.Linear(64, num_classes),
    )


if __name__ == "__main__":
    scn = wrssl.load_scenario("digits", ood="patches", ratio=0.5, seed=0)
    res = wrssl.fit(scn, model="two-layers", steps=100, seed=0, fallback=False)
    print(f"test accuracy {res.metrics['test_accuracy']:.3f}")
