"""Options that several commands share, and how their texts are read."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from wrssl.data import Scenario

AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object.")]
ScenarioName = Annotated[str | None, typer.Option(help="moons, digits, mnist, cifar10, cifar100, svhn")]
Ood = Annotated[str | None, typer.Option(help="The kind of foreign rows in the pool.")]
Ratio = Annotated[float, typer.Option(help="Their share of the pool, 0 to 1.")]
Mode = Annotated[str, typer.Option(help="replace, add or oliver")]
Clean = Annotated[bool, typer.Option("--clean", help="Remove the foreign rows again.")]
DataDir = Annotated[Path | None, typer.Option(help="Folder of the data files.")]
Download = Annotated[bool, typer.Option("--download", help="Fetch missing files.")]
LabelsPerClass = Annotated[int | None, typer.Option(help="Labels per class.")]
ValidationSize = Annotated[int | None, typer.Option(help="Use fewer validation rows.")]
UnlabeledSize = Annotated[int | None, typer.Option(help="Use a smaller pool.")]
Labeled = Annotated[Path | None, typer.Option(help="Own images: a folder with one sub-folder per class.")]
Unlabeled = Annotated[Path | None, typer.Option(help="Own images: a folder of images, anywhere below it.")]
Validation = Annotated[
    str | None, typer.Option(help="A folder like --labeled, or the share of the labels to hold out; default by size.")
]
Test = Annotated[Path | None, typer.Option(help="A folder like --labeled, looked at once at the end.")]
ImageSize = Annotated[int, typer.Option(help="Own images are brought to this height and width.")]
Augment = Annotated[str | None, typer.Option(help="none, shapes, signs or photos: changes that keep the class")]
Model = Annotated[str, typer.Option(help="auto, mlp, lenet, small_cnn, wrn-28-2, each also with -nobn")]
MethodName = Annotated[str, typer.Option(help="See: wrssl methods")]
Weights = Annotated[str, typer.Option(help="See: wrssl methods")]
Steps = Annotated[str, typer.Option(help="Optimiser steps, or auto.")]
Seed = Annotated[int, typer.Option(help="Every random number follows from it.")]
Device = Annotated[str | None, typer.Option(help="cpu, cuda, …")]
BatchSize = Annotated[int, typer.Option(help="Of each kind of batch.")]
Lr = Annotated[float | None, typer.Option(help="Learning rate; default the method's.")]
Threads = Annotated[int | None, typer.Option(help="Of torch; default by the size of the network.")]
Pairs = Annotated[list[str] | None, typer.Option(help="NAME=VALUE, repeatable.")]


def read_scenario(named: dict[str, Any], folders: dict[str, Any], command: str) -> Scenario:
    """The data that the options describe; what is odd but usable is said on standard error.

    Args:
        named: the keywords of ``load_scenario``; ``scenario`` is None where the data are folders.
        folders: those of ``Scenario.from_folders``.
        command: for the advice where neither is given.
    """
    import wrssl
    from wrssl.api import OptionError

    name, seed = named.pop("scenario"), named["seed"]
    given = [key for key in ("labeled", "unlabeled") if folders[key] is not None]
    if name is not None and given:
        raise OptionError(f"Give --scenario or --{given[0]}, not both.")
    if name is None and len(given) < 2:
        raise OptionError(
            f"Say what to train on, for example: wrssl {command} --scenario digits, or: wrssl {command} --labeled DIR "
            "--unlabeled DIR"
        )
    if name is not None:
        scenario = wrssl.load_scenario(name, **named)
    else:
        folders["validation"] = _share_or_folder(folders["validation"])
        scenario = wrssl.Scenario.from_folders(**folders, seed=seed)
    for note in scenario.notes:
        typer.echo(f"note: {note}", err=True)
    return scenario


def _share_or_folder(text: str | None) -> float | str | None:
    try:
        return None if text is None else float(text)
    except ValueError:
        return text


def number_of_steps(text: str) -> int | str:
    """A whole number, or the word as it is."""
    return int(text) if text.lstrip("-").isdigit() else text


def pairs(option: str, texts: list[str] | None) -> dict[str, Any]:
    """``["eps=3", "kl=oliver"]`` as a dictionary; values are JSON where they can be, else text."""
    from wrssl.api import OptionError

    found: dict[str, Any] = {}
    for text in texts or []:
        name, sign, value = text.partition("=")
        if not sign or not name:
            raise OptionError(f"--{option} needs NAME=VALUE, for example --{option} L=5, not {text!r}.")
        try:
            found[name] = json.loads(value)
        except json.JSONDecodeError:
            found[name] = value
    return found


def print_json(value: Any) -> None:
    """One object on one line."""
    from wrssl.training.files import plain

    typer.echo(json.dumps(plain(value), allow_nan=False))
