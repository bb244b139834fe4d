"""What channels innermost in memory save: a step of VAT in that order of the numbers against one in torch's own.

    OMP_NUM_THREADS=1 .venv/bin/python benchmarks/programs/layout.py

Steps take turns, on one thread; the clock is that of the process, so that what else runs on the machine counts less.
One line per network, weighting and size of the images.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from unittest import mock

import numpy as np
from torch import Tensor

from wrssl.data import Scenario
from wrssl_bench.steps import make_trainer, stepper
from wrssl_bench.timing import interleave, torch_threads

NETWORKS = {"small_cnn": "wrssl.models.networks", "wrn-28-2": "wrssl.models.wide_resnet"}
SHAPES = ((1, 28, 28), (3, 32, 32))


def as_it_is(x: Tensor) -> Tensor:
    return x


def noise(shape: tuple[int, ...]) -> Scenario:
    x, y = np.random.default_rng(0).standard_normal((1200, *shape), dtype=np.float32), np.arange(100) % 10
    return Scenario((x[:100], y), x[200:], (x[100:200], y), name="noise images")


def without(step: Callable[[], object], network: str) -> Callable[[], object]:
    def run() -> None:
        with mock.patch(f"{NETWORKS[network]}.channels_last", as_it_is):
            step()

    return run


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--networks", nargs="+", choices=NETWORKS, default=["small_cnn"])
    parser.add_argument("--blocks", type=int, default=12)
    given = parser.parse_args()
    with torch_threads(1):
        for network in given.networks:
            for shape in SHAPES:
                for weights in ("none", "wr-cluster"):
                    last, usual = (stepper(make_trainer(noise(shape), network, weights=weights)) for _ in range(2))
                    pairs = interleave(last, without(usual, network), given.blocks, 5, 5, time.process_time)
                    figure = pairs.figure()
                    ms = f"{figure.details['ms']:.1f} ms against {figure.details['base_ms']:.1f} ms"
                    ratio = f"ratio {figure.median:.2f}, spread {figure.spread:.2f}"
                    print(f"{network} {shape} {weights}: {ms}, {ratio}", flush=True)


if __name__ == "__main__":
    main()
