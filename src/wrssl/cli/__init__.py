"""The command line. Heavy imports happen inside the commands, so that ``wrssl --help`` is quick."""

from wrssl.cli import audit, finished, fit, tour  # noqa: F401  (each adds its commands)
from wrssl.cli.app import app, main, stoppable

__all__ = ["app", "main", "stoppable"]
