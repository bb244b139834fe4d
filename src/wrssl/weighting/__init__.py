"""Weightings of the unlabeled loss, one per file; importing this registers them."""

from __future__ import annotations

from wrssl.registry import WEIGHTINGS, list_weightings, register_weighting
from wrssl.weighting.kmeans import kmeans, sample_rows
from wrssl.weighting.weighted_mean import weighted_mean

from wrssl.weighting import none  # isort: skip
from wrssl.weighting import oracle  # isort: skip
from wrssl.weighting import instance  # isort: skip
from wrssl.weighting import cluster  # isort: skip
from wrssl.weighting import l2rw  # isort: skip
from wrssl.weighting import mwn  # isort: skip
from wrssl.weighting import ds3l  # isort: skip
from wrssl.weighting import uasd  # isort: skip
from wrssl.weighting import prior  # isort: skip
from wrssl.weighting import wr  # isort: skip

__all__ = [
    "WEIGHTINGS",
    "cluster",
    "ds3l",
    "instance",
    "kmeans",
    "l2rw",
    "list_weightings",
    "mwn",
    "none",
    "oracle",
    "prior",
    "register_weighting",
    "sample_rows",
    "uasd",
    "weighted_mean",
    "wr",
]
