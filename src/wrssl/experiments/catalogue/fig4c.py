"""Figure 4c: CIFAR-10, six classes against four, VAT."""

from __future__ import annotations

from wrssl.experiments.catalogue.cifar10 import CIFAR_NOTES, both_claims, both_norms, panels
from wrssl.experiments.experiment import Experiment

EXPERIMENT = Experiment(
    "fig4c",
    "CIFAR-10 with four foreign classes: VAT",
    both_norms("vat"),
    panels("VAT"),
    claims=both_claims(),
    notes=CIFAR_NOTES,
)
