"""The errors that a user can cause. They stand apart from ``api.py``, so that reading options does not load torch."""

from __future__ import annotations


class WRSSLError(Exception):
    """Parent of every error that a user can cause; the message says in one sentence what to do next."""


class DataError(WRSSLError):
    """The data does not fit together: shapes, types, classes, NaN, overlap, a missing file."""


class ModelError(WRSSLError):
    """The model cannot be used as it is, for example because its last layer is not Linear."""


class OptionError(WRSSLError):
    """An option has a value that does not exist or does not go with another one."""


class DivergenceError(WRSSLError):
    """An iteration does not converge; the message names the step size that would."""
