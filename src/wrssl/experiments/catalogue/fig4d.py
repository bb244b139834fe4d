"""Figure 4d: CIFAR-10, six classes against four, Pseudo-Label."""

from __future__ import annotations

import math

from wrssl.experiments.catalogue.cells import PAPERS, PLAIN
from wrssl.experiments.catalogue.cifar10 import CIFAR_NOTES, NORMS, both_claims, both_norms, panels
from wrssl.experiments.cell import Label
from wrssl.experiments.experiment import Claim, Experiment

EXPERIMENT = Experiment(
    "fig4d",
    "CIFAR-10 with four foreign classes: Pseudo-Label",
    both_norms("pl"),
    panels("PL"),
    claims=(
        *(
            Claim(
                f"At 75 % the paper's method is better than the baselines (here: plain PL, {words})",
                "almost 4.5 points",
                Label(panel, PAPERS, "75"),
                Label(panel, PLAIN, "75"),
                (4.0, math.inf),
            )
            for panel, words in NORMS.items()
        ),
        *both_claims(),
    ),
    notes=CIFAR_NOTES,
)
