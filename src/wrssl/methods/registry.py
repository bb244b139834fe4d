"""The registry of base methods."""

from __future__ import annotations

from wrssl.api import Method
from wrssl.registry import Registry

METHODS: Registry[Method] = Registry("method")
register_method = METHODS.register
list_methods = METHODS.names
