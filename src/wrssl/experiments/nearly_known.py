"""Clusters of a given purity, for one comparison: what would the paper's weights do if its clusters were better?

The paper clusters features of a pre-trained network. A clustering for 50 % that comes with its published code puts
97.4 % of the members into clusters whose majority is on their side, own or foreign; clusters of principal components
mix the two.
"""

from __future__ import annotations

import torch
from torch import Tensor

from wrssl.api import DataError
from wrssl.data import Scenario
from wrssl.evaluate.truth import is_ood
from wrssl.training.embedding import EmbeddedRows, principal_components
from wrssl.training.randomness import stream

FAR = 100.0  # in units of the largest norm: k-means never joins what is so far apart


def nearly_known_sides(scenario: Scenario, purity: float, seed: int) -> Tensor:
    """Principal components of the pool and a column that says own or foreign, wrong for some members.

        row_j = (z_j, s_j · c),    s_j = ±1 by the truth with probability ``purity``, else the other,

    where c is far beyond every ‖z_j‖, so that k-means divides each side by itself. This uses the truth, as oracle
    weights do.

    Args:
        scenario: whose pool and truth.
        purity: probability of the right side.
        seed: of the errors and of the sample for the components.
    """
    foreign = is_ood(scenario)
    if foreign is None:
        raise DataError("Clusters of a given purity need to know who is foreign; this scenario does not say.")
    pool = scenario.unlabeled
    rows = EmbeddedRows(pool, principal_components(pool, stream(seed, "components")))[:]
    wrong = torch.rand(len(foreign), generator=stream(seed, "purity")) >= purity
    side = (foreign ^ wrong).float() * 2 - 1
    return torch.cat([rows, side[:, None] * FAR * rows.norm(dim=1).max()], 1)
