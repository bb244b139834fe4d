"""Weightings of the unlabelled loss, one per file. Adding one is a file, a line here and a test."""

from __future__ import annotations

from wrssl.weighting.registry import WEIGHTINGS, list_weightings, register_weighting

from wrssl.weighting import none  # isort: skip
from wrssl.weighting import oracle  # isort: skip
from wrssl.weighting import instance  # isort: skip
from wrssl.weighting import cluster  # isort: skip

__all__ = ["WEIGHTINGS", "cluster", "instance", "list_weightings", "none", "oracle", "register_weighting"]
