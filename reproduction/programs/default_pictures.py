"""How the default decides, as a picture: scores of the prior, where own and foreign members lie, and the weight curve.

    WRSSL_DATA=... .venv/bin/python reproduction/programs/default_pictures.py --out docs/images/default-prior.png

Three pools (MNIST with half Fashion-MNIST, EMNIST letters, means of two digits), compared with 100 labeled examples
alone and with 5,000 validation examples beside them. The truth is used for the colors and for nothing else.
"""

from __future__ import annotations

import argparse
import os
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
import torch

import wrssl
from wrssl.evaluate import auroc, is_ood
from wrssl.priors import Prior, fit_prior
from wrssl.training import principal_components

POOLS = {"fashion": "Fashion-MNIST", "emnist": "EMNIST letters", "mean": "means of two digits"}
OWN, FOREIGN, CURVE = "#0072B2", "#D55E00", "#111111"


def prior_of(ood: str, validation: int, seed: int, data_dir: str | None) -> tuple[Prior, np.ndarray]:
    """The prior of the pool and the truth about it."""
    scenario = wrssl.load_scenario("mnist", ood, 0.5, seed=seed, data_dir=data_dir)
    x, y = scenario.labeled
    if validation:
        assert scenario.validation is not None
        x = torch.cat([x, scenario.validation[0][:validation]])
        y = torch.cat([y, scenario.validation[1][:validation]])
    embed = principal_components(scenario.unlabeled, torch.Generator().manual_seed(seed))
    truth = is_ood(scenario)
    assert truth is not None
    return fit_prior(embed(x), y.numpy(), embed(scenario.unlabeled), seed), truth.numpy()


def draw(axes: plt.Axes, prior: Prior, foreign: np.ndarray, title: str) -> None:
    """Two histograms and the curve."""
    scores = prior.scores.astype(np.float64)
    low, high = np.quantile(scores, [0.001, 0.999])
    bins = np.linspace(low, high, 60)
    axes.hist(scores[~foreign], bins, color=OWN, alpha=0.55, label="own members")
    axes.hist(scores[foreign], bins, color=FOREIGN, alpha=0.55, label="foreign members")
    axes.set_yticks([])
    axes.set_xlim(low, high)
    found = auroc(prior.ood_score(slice(None)), foreign)
    w = prior.weight(slice(None))
    axes.set_title(
        f"{title}\nAUROC {found:.3f}, mean weight {w[~foreign].mean():.2f} / {w[foreign].mean():.2f}", fontsize=9
    )
    right = axes.twinx()
    x = np.linspace(low, high, 400)
    right.plot(x, prior.curve(x), color=CURVE, lw=1.6, label="weight")
    right.set_ylim(0, 1.05)
    right.tick_params(labelsize=8)
    axes.tick_params(labelsize=8)


def main() -> None:
    """Draw it."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--data-dir", default=os.environ.get("WRSSL_DATA"))
    options = parser.parse_args()
    figure, grid = plt.subplots(2, 3, figsize=(11, 5.6), layout="constrained")
    for row, (validation, words) in zip(grid, ((0, "100 references"), (5000, "5,100 references")), strict=True):
        for axes, (ood, name) in zip(row, POOLS.items(), strict=True):
            draw(axes, *prior_of(ood, validation, options.seed, options.data_dir), f"{name}: {words}")
    for axes in grid[1]:
        axes.set_xlabel("score of the stack (log-odds): right looks like the labels", fontsize=8)
    handles = [plt.Rectangle((0, 0), 1, 1, color=c, alpha=0.55) for c in (OWN, FOREIGN)] + [
        plt.Line2D([0], [0], color=CURVE)
    ]
    figure.legend(
        handles, ["own members", "foreign members", "weight (right axis)"], loc="outside lower center", ncols=3
    )
    options.out.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(options.out, dpi=110)


if __name__ == "__main__":
    main()
