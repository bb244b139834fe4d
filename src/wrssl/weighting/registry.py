"""The registry of weightings."""

from __future__ import annotations

from wrssl.registry import WEIGHTINGS, list_weightings, register_weighting

__all__ = ["WEIGHTINGS", "list_weightings", "register_weighting"]
