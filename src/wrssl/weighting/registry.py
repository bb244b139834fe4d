"""The registry of weightings."""

from __future__ import annotations

from wrssl.api import Weighting
from wrssl.registry import Registry

WEIGHTINGS: Registry[Weighting] = Registry("weighting")
register_weighting = WEIGHTINGS.register
list_weightings = WEIGHTINGS.names
