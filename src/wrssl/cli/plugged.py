"""Commands of other distributions, found by their entry points in the group ``wrssl.commands``.

    [project.entry-points."wrssl.commands"]
    bench = "wrssl_bench:bench"

The entry point is a function with the annotations of typer. It is looked for when its command runs: ``wrssl --help``
lists the command at no cost, also where its distribution is not installed.
"""

from __future__ import annotations

from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup

from wrssl.errors import OptionError

ENTRY_POINTS = "wrssl.commands"
COMMANDS = {  # name: distribution, help
    "reproduce": ("wrssl-reproduction", "Run a figure or table of the paper: results.csv, table.md, figure.png."),
    "bench": (
        "wrssl-bench",
        "What a step costs, as ratios measured in one run on this machine, in about nine minutes.",
    ),
}


class PluggedCommand(TyperCommand):
    """Stands for a command of another distribution until it is called."""

    def __init__(self, name: str, distribution: str, help: str) -> None:
        super().__init__(name, help=help)
        self.distribution = distribution

    def make_context(self, info_name: str | None, args: list[str], parent: Any = None, **extra: Any) -> Any:
        """The context of the command itself, which parses the arguments and is then called."""
        return self.load().make_context(info_name, args, parent, **extra)

    def load(self) -> TyperCommand:
        """The command itself; a sentence with the pip command where its distribution is missing."""
        from importlib.metadata import entry_points  # takes a third of the time of ``wrssl --help``

        for entry in entry_points(group=ENTRY_POINTS, name=str(self.name)):
            holder = typer.Typer(add_completion=False, rich_markup_mode=None)
            holder.command(self.name)(entry.load())
            return typer.main.get_command(holder)  # type: ignore[return-value]
        raise OptionError(f"{self.name} comes with its own package; install it with: pip install {self.distribution}")


class WithPlugged(TyperGroup):
    """The commands of the package, then those of other distributions."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        for name, (distribution, help) in COMMANDS.items():
            self.commands[name] = PluggedCommand(name, distribution, help)
