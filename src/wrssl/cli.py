"""The command line. Heavy imports happen inside the commands, so that ``wrssl --help`` is quick."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

app = typer.Typer(
    name="wrssl",
    help="Train a classifier from few labels and an unlabelled pool that may contain anything.",
    add_completion=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)


def main() -> None:
    """Run the command; an error that the user caused is one sentence and exit code 2."""
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
        _fail(f"The system says: {error.strerror or error}{where}; check the path, its permissions and the disk.", 2)
    except Exception as error:
        # Wrong options, as the option parser reports them; its exception classes are not public everywhere.
        if hasattr(error, "format_message") and hasattr(error, "exit_code"):
            _fail(_usage(error), error.exit_code)
        from wrssl.api import WRSSLError

        if not isinstance(error, WRSSLError):
            raise
        _fail(str(error), 2)


def _usage(error: Any) -> str:
    """The parser's message as one sentence, with the command that lists what exists."""
    context = getattr(error, "ctx", None)
    command = context.command_path if context is not None else "wrssl"
    message = " ".join(str(error.format_message()).split()).rstrip(".")
    return f"{message}; see: {command} --help"


def _fail(message: str, code: int) -> None:
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


@app.command()
def demo(
    out: Annotated[Path | None, typer.Option(help="A new folder for the picture and the table.")] = None,
    seed: Annotated[int, typer.Option(help="Every random number follows from it.")] = 0,
) -> None:
    """Contaminated digits and moons, no download: a table and a picture, in about a minute."""
    from wrssl.demo import run_demo

    run_demo(out, seed)


@app.command()
def fit(
    scenario: Annotated[str | None, typer.Option(help="moons, digits, mnist, cifar10, cifar100, svhn")] = None,
    ood: Annotated[str | None, typer.Option(help="The kind of foreign rows in the pool.")] = None,
    ratio: Annotated[float, typer.Option(help="Their share of the pool, 0 to 1.")] = 0.5,
    mode: Annotated[str, typer.Option(help="replace or add")] = "replace",
    clean: Annotated[bool, typer.Option("--clean", help="Remove the foreign rows again.")] = False,
    data_dir: Annotated[Path | None, typer.Option(help="Folder of the data files.")] = None,
    download: Annotated[bool, typer.Option("--download", help="Fetch missing files.")] = False,
    labels_per_class: Annotated[int | None, typer.Option(help="Labels per class.")] = None,
    validation_size: Annotated[int | None, typer.Option(help="Use fewer validation rows.")] = None,
    model: Annotated[str, typer.Option(help="auto, mlp, lenet, small_cnn, wrn-28-2, each also with -nobn")] = "auto",
    method: Annotated[str, typer.Option(help="See: wrssl methods")] = "vat",
    weights: Annotated[str, typer.Option(help="See: wrssl methods")] = "wr",
    bn: Annotated[str, typer.Option(help="batch, frozen, eval or weighted")] = "weighted",
    steps: Annotated[str, typer.Option(help="Optimiser steps, or auto.")] = "auto",
    seed: Annotated[int, typer.Option(help="Every random number follows from it.")] = 0,
    gate: Annotated[str | None, typer.Option(help="cosine: drop the pool in steps where it opposes the labels")] = None,
    fallback: Annotated[bool, typer.Option(help="wr: also train plain and supervised, return the best.")] = True,
    out: Annotated[Path | None, typer.Option(help="A new run directory.")] = None,
    device: Annotated[str | None, typer.Option(help="cpu, cuda, …")] = None,
    batch_size: Annotated[int, typer.Option(help="Of each kind of batch.")] = 100,
    lr: Annotated[float | None, typer.Option(help="Learning rate; default the method's.")] = None,
    budget: Annotated[str, typer.Option(help="halves, or paper: one validation set for both roles")] = "halves",
    threads: Annotated[int | None, typer.Option(help="Of torch; default by the size of the network.")] = None,
    fast: Annotated[bool, typer.Option(help="Fused kernels; without them the same, layer by layer.")] = True,
    method_option: Annotated[list[str] | None, typer.Option(help="NAME=VALUE, repeatable.")] = None,
    weight_option: Annotated[list[str] | None, typer.Option(help="NAME=VALUE, repeatable.")] = None,
    resume: Annotated[Path | None, typer.Option(help="Go on with the run in this directory.")] = None,
    json_: Annotated[bool, typer.Option("--json", help="Print the metrics as JSON.")] = False,
) -> None:
    """Train on a named scenario and write a run directory."""
    import wrssl
    from wrssl.api import OptionError
    from wrssl.training.resume import resume_run

    if resume is not None:
        _report(resume_run(resume, data_dir), resume, json_)
        return
    if scenario is None:
        raise OptionError("Say what to train on, for example: wrssl fit --scenario digits --out RUN")
    data = wrssl.load_scenario(
        scenario,
        ood=ood,
        ratio=ratio,
        mode=mode,
        seed=seed,
        data_dir=data_dir,
        clean=clean,
        download=download,
        labels_per_class=labels_per_class,
        validation_size=validation_size,
    )
    for note in data.notes:
        typer.echo(f"note: {note}", err=True)
    result = wrssl.fit(
        data,
        model=model,
        method=method,
        weights=weights,
        bn=bn,
        steps=_steps(steps),
        seed=seed,
        gate=gate,
        fallback=fallback,
        out=out,
        device=device,
        method_options=_pairs("method-option", method_option),
        weight_options=_pairs("weight-option", weight_option),
        batch_size=batch_size,
        lr=lr,
        budget=budget,
        threads=threads,
        fast=fast,
    )
    _report(result, out, json_)


@app.command()
def bench(
    only: Annotated[list[str] | None, typer.Option(help="A key to measure, repeatable; default all.")] = None,
    json_: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """What a step costs, as ratios measured in one run on this machine, in about nine minutes."""
    from wrssl.bench import run_bench

    run_bench(only or (), json_)


@app.command()
def methods() -> None:
    """The base methods and the weightings, one line each."""
    from wrssl.methods import METHODS
    from wrssl.weighting import WEIGHTINGS

    for title, registry in (("method", METHODS), ("weights", WEIGHTINGS)):
        typer.echo(f"--{title}")
        for name in registry.names():
            typer.echo(f"  {name:<12} {registry.get(name).summary}")


def _steps(text: str) -> int | str:
    return int(text) if text.lstrip("-").isdigit() else text


def _pairs(option: str, texts: list[str] | None) -> dict[str, Any]:
    """``["eps=3", "kl=oliver"]`` as a dictionary; values are JSON where they can be, else text."""
    from wrssl.api import OptionError

    pairs: dict[str, Any] = {}
    for text in texts or []:
        name, sign, value = text.partition("=")
        if not sign or not name:
            raise OptionError(f"--{option} needs NAME=VALUE, for example --{option} L=5, not {text!r}.")
        try:
            pairs[name] = json.loads(value)
        except json.JSONDecodeError:
            pairs[name] = value
    return pairs


def _report(result: Any, out: Path | None, as_json: bool) -> None:
    metrics = result.metrics
    if as_json:
        from wrssl.training.files import plain

        typer.echo(json.dumps(plain(metrics), allow_nan=False))
        return
    rows = [
        ("test accuracy", "test_accuracy"),
        ("validation accuracy", "val_accuracy"),
        ("foreign members found (AUROC of ood_score)", "ood_auroc"),
        ("foreign members found (AUROC of the weights)", "weight_auroc"),
    ]
    for title, key in rows:
        if metrics[key] is not None:
            typer.echo(f"{title}: {metrics[key]:.4f}")
    if out is not None:
        typer.echo(f"run directory: {out}")
