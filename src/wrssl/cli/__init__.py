"""The command line. Heavy imports happen inside the commands, so that ``wrssl --help`` is quick."""

from wrssl.cli import audit, bench, demo, fit, methods, predict, report, reproduce  # noqa: F401  (each adds its command)
from wrssl.cli.app import app, main

__all__ = ["app", "main"]
