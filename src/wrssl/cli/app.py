"""The program ``wrssl``: its errors are one sentence each, its commands are in the files beside this one."""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated, Any

import typer

from wrssl.cli.plugged import WithPlugged
from wrssl.worker import is_worker

app = typer.Typer(
    name="wrssl",
    cls=WithPlugged,
    help="Train a classifier from few labels and an unlabeled pool that may contain anything.",
    add_completion=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)


def main() -> None:
    """Run the command; an error that the user caused is one sentence and exit code 2."""
    if is_worker():
        sys.stdout = sys.stderr = open(os.devnull, "w")  # noqa: SIM115  (until the process ends)
    try:
        code = app(standalone_mode=False)
        sys.exit(code if isinstance(code, int) else 0)
    except (KeyboardInterrupt, typer.Abort):
        _fail("Stopped.", 130)
    except BrokenPipeError:  # the reader of our output went away, for example `| head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(0)
    except OSError as error:
        where = f" ({error.filename})" if error.filename else ""
        _fail(f"I/O error: {error.strerror or error}{where}; check the path, its permissions and the disk.", 2)
    except Exception as error:
        # Wrong options, as the option parser reports them; its exception classes are not public everywhere.
        if hasattr(error, "format_message") and hasattr(error, "exit_code"):
            _fail(_usage(error), error.exit_code)
        from wrssl.errors import WRSSLError

        if not isinstance(error, WRSSLError):
            sys.stderr = sys.__stderr__
            raise
        _fail(str(error), 2, getattr(error, "said_by_the_first", False))


@contextmanager
def stoppable() -> Iterator[None]:
    """Within this, Ctrl-C and SIGTERM end with the message of the run, and a warning about its directory is a note.

    The option parser would drop the message.
    """
    from wrssl.runs import Interrupted, StateWarning, termination

    usual = warnings.showwarning

    def show(message: Warning | str, category: type[Warning], *where: Any) -> None:
        if issubclass(category, StateWarning):
            typer.echo(f"note: {message}", err=True)
        else:
            usual(message, category, *where)

    try:
        with warnings.catch_warnings(), termination():
            warnings.showwarning = show  # type: ignore[assignment]
            yield
    except KeyboardInterrupt as stop:
        _fail(str(stop) or "Stopped.", stop.exit_code if isinstance(stop, Interrupted) else 130)


def _usage(error: Any) -> str:
    """The parser's message as one sentence, with the command that lists what exists."""
    context = getattr(error, "ctx", None)
    command = context.command_path if context is not None else "wrssl"
    message = " ".join(str(error.format_message()).split()).rstrip(".")
    return f"{message}; see: {command} --help"


def _fail(message: str, code: int, said_by_the_first: bool = False) -> None:
    if is_worker() and not said_by_the_first:
        message, sys.stderr = f"process {os.environ.get('LOCAL_RANK', '0')}: {message}", sys.__stderr__
    typer.echo(f"wrssl: {message}", err=True)
    sys.exit(code)


def _version(value: bool) -> None:
    if value:
        from wrssl import __version__

        typer.echo(__version__)
        raise typer.Exit


@app.callback(invoke_without_command=True)
def _root(
    context: typer.Context,
    version: Annotated[bool, typer.Option("--version", callback=_version, is_eager=True, help="Print it.")] = False,
) -> None:
    """Without a command, say what there is."""
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())
