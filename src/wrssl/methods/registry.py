"""The registry of base methods."""

from __future__ import annotations

from wrssl.registry import METHODS, list_methods, register_method

__all__ = ["METHODS", "list_methods", "register_method"]
