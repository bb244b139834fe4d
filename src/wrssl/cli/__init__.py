"""The command line. Heavy imports happen inside the commands, so that ``wrssl --help`` is quick."""

from wrssl.cli.app import app, main, stoppable

# Each adds its commands, in the order of the help.
from wrssl.cli import fit  # noqa: F401  isort: skip
from wrssl.cli import audit  # noqa: F401  isort: skip
from wrssl.cli import finished  # noqa: F401  isort: skip
from wrssl.cli import embed  # noqa: F401  isort: skip
from wrssl.cli import tour  # noqa: F401  isort: skip

__all__ = ["app", "main", "stoppable"]
