"""Options that several commands share: where the data comes from, and those that follow from ``FitConfig``."""

from __future__ import annotations

import dataclasses
import functools
import inspect
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, get_type_hints

import typer

from wrssl.config import facts_of
from wrssl.config import options as fit_options
from wrssl.errors import OptionError

if TYPE_CHECKING:
    from wrssl.config import FitConfig
    from wrssl.data import Scenario


def _load_plugins(paths: list[Path] | None) -> list[Path] | None:
    if paths:
        from wrssl.registry import load_plugin

        for path in paths:
            load_plugin(path)
    return paths


AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object.")]
DataDir = Annotated[Path | None, typer.Option(help="Folder of the data files.")]
Plugin = Annotated[
    list[Path] | None,
    typer.Option(help="A Python file that registers methods, weightings, …; repeatable.", callback=_load_plugins),
]
SEED_HELP = next(facts_of(each).help for each in fit_options() if each.name == "seed")


@dataclass(frozen=True)
class DataOptions:
    """Where the data comes from: the keywords of ``load_scenario``, or folders of images."""

    scenario: Annotated[str | None, typer.Option(help="moons, digits, mnist, cifar10, cifar100, svhn")] = None
    ood: Annotated[str | None, typer.Option(help="The kind of foreign rows in the pool.")] = None
    ratio: Annotated[float, typer.Option(help="Their share of the pool, 0 to 1.")] = 0.5
    mode: Annotated[str, typer.Option(help="replace, add or oliver")] = "replace"
    clean: Annotated[bool, typer.Option("--clean", help="Remove the foreign rows again.")] = False
    data_dir: DataDir = None
    download: Annotated[bool, typer.Option("--download", help="Fetch missing files.")] = False
    labels_per_class: Annotated[int | None, typer.Option(help="Labels per class.")] = None
    validation_size: Annotated[int | None, typer.Option(help="Use fewer validation rows.")] = None
    unlabeled_size: Annotated[int | None, typer.Option(help="Use a smaller pool.")] = None
    labeled: Annotated[Path | None, typer.Option(help="Own images: a folder with one sub-folder per class.")] = None
    unlabeled: Annotated[Path | None, typer.Option(help="Own images: a folder of images, anywhere below it.")] = None
    validation: Annotated[
        str | None,
        typer.Option(help="A folder like --labeled, or the share of the labels to hold out; default by size."),
    ] = None
    test: Annotated[Path | None, typer.Option(help="A folder like --labeled, used once at the end.")] = None
    image_size: Annotated[int, typer.Option(help="Own images are brought to this height and width.")] = 32
    augment: Annotated[str | None, typer.Option(help="none, shapes, signs or photos: changes that keep the class")] = (
        None
    )

    def read(self, command: str, seed: int) -> Scenario:
        """The data; items are found, and read when they are needed.

        Args:
            command: for the advice where no data is named.
            seed: of every random choice.
        """
        import wrssl

        given = [name for name in ("labeled", "unlabeled") if getattr(self, name) is not None]
        if self.scenario is not None and given:
            raise OptionError(f"Give --scenario or --{given[0]}, not both.")
        if self.scenario is not None:
            scenario = wrssl.load_scenario(
                self.scenario, self.ood, self.ratio, self.mode, seed, self.data_dir, clean=self.clean,
                download=self.download, labels_per_class=self.labels_per_class, validation_size=self.validation_size,
                unlabeled_size=self.unlabeled_size,
            )  # fmt: skip
        elif self.labeled is None or self.unlabeled is None:
            raise OptionError(
                f"Say what to train on, for example: wrssl {command} --scenario digits, or: wrssl {command} --labeled "
                "DIR --unlabeled DIR"
            )
        else:
            scenario = wrssl.Scenario.from_folders(
                self.labeled, self.unlabeled, _share_or_folder(self.validation), self.image_size, test=self.test,
                seed=seed, augment=self.augment,
            )  # fmt: skip
        return scenario

    def read_for(self, command: str, config: FitConfig) -> Scenario:
        """The data as a run with these options takes it, embedded or as pixels; prints what is odd but usable."""
        from wrssl.training import see

        scenario, _, _ = see(self.read(command, config.seed), config, say=lambda _: None)  # its notes are printed here
        for note in scenario.notes:
            typer.echo(f"note: {note}", err=True)
        return scenario


def _share_or_folder(text: str | None) -> float | str | None:
    try:
        return None if text is None else float(text)
    except ValueError:
        return text


def takes(
    leave_out: Sequence[str] = (), data: Sequence[str] = ()
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Decorator of a command ``run(data: DataOptions, options: dict, *, own options)``.

    The command line shows the data options, then those of ``FitConfig``, then the command's own; ``options`` has the
    keywords of ``FitConfig``.

    Args:
        leave_out: options of ``FitConfig`` that the command does not have.
        data: data options that it does not have.
    """
    fields = [each for each in dataclasses.fields(DataOptions) if each.name not in data]
    types = get_type_hints(DataOptions, include_extras=True)
    settings = [each for each in fit_options(leave_out) if facts_of(each).typed is not None]

    def decorate(run: Callable[..., None]) -> Callable[..., None]:
        taken = list(inspect.signature(run, eval_str=True).parameters.values())
        own = [p.replace(kind=p.KEYWORD_ONLY) for p in taken[2:]]

        @functools.wraps(run)
        def command(**values: Any) -> None:
            of_data = DataOptions(**{each.name: values.pop(each.name) for each in fields})
            options = {each.name: _value(each, values.pop(each.name)) for each in settings}
            run(of_data, options, **values)

        keyword = inspect.Parameter.KEYWORD_ONLY
        parameters = [
            *(
                inspect.Parameter(each.name, keyword, default=each.default, annotation=types[each.name])
                for each in fields
            ),
            *(
                inspect.Parameter(each.name, keyword, default=each.default, annotation=_typed(each))
                for each in settings
            ),
            *own,
        ]
        command.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
        command.__annotations__ = {}
        return command

    return decorate


_TYPED = {"str": str, "int": int, "float": float, "bool": bool, "os.PathLike[str]": Path}


def _typed(each: dataclasses.Field[Any]) -> Any:
    """The option as typer wants it; types that the command line cannot read are left out of a union."""
    facts = facts_of(each)
    read = facts.typed
    if read == "annotation":
        words = str(each.type).split(" | ")
        read = next(_TYPED[word] for word in reversed(words) if word in _TYPED)
    names = [] if facts.flag is None else [facts.flag]
    many = " NAME=VALUE, repeatable." if read == list[str] else ""
    return Annotated[read if each.default is not None else read | None, typer.Option(*names, help=facts.help + many)]


def _value(each: dataclasses.Field[Any], value: Any) -> Any:
    """From what the command line read to the value of the option."""
    if facts_of(each).typed == list[str]:
        return pairs((facts_of(each).flag or each.name).lstrip("-"), value)
    if each.name == "steps":
        return int(value) if value.lstrip("-").isdigit() else value
    return value


def pairs(option: str, texts: list[str] | None) -> dict[str, Any]:
    """``["eps=3", "kl=oliver"]`` as a dictionary; values are JSON where they can be, else text."""
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


def given_on_the_command_line(context: typer.Context) -> set[str]:
    """The names of the options that the user gave, in contrast to defaults."""
    return {name for name in context.params if getattr(context.get_parameter_source(name), "name", "") == "COMMANDLINE"}


def print_json(value: Any) -> None:
    """One object on one line."""
    from wrssl.runs import plain

    typer.echo(json.dumps(plain(value), allow_nan=False))
