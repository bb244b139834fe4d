"""Which files of the package a default fit runs through: ``python tools/trace_fit.py`` prints the walk as a table.

``wrssl.fit`` is called on the digits with its defaults (and few steps) while every call of a function of the package is
watched. The table in docs/architecture.md describes the walk, and tests/test_walk.py compares it with this program.

* Files of the ground floor (contracts, options, registries, the progress bar) are left out.
* A file **directs** where its functions call those of at least two other files from which it imports something.
* Every other file **helps** the directing file on whose behalf it is called first.

A call through an object that was handed over, such as a weighting or rows that are read in parts, is one of its
contract: the caller imports nothing from the file of that object, so the call does not count.
"""

from __future__ import annotations

import argparse
import ast
import inspect
import json
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from types import FrameType
from typing import Any

import wrssl

SOURCE = Path(wrssl.__file__).parent
GROUND = ("__init__", "api", "compiling", "config", "errors", "judging", "progress", "registry", "worker")
OTHERS = 2  # files that a directing file calls


class Trace:
    """The files that ran, in the order of their first call.

    Attributes:
        behind: for each file the files on the stack at its first call, the nearest caller first.
        calls: pairs of a file and another one that it calls.
    """

    def __init__(self) -> None:
        self.behind: dict[str, list[str]] = {}
        self.calls: set[tuple[str, str]] = set()

    def watch(self, frame: FrameType, event: str, _: Any) -> None:
        """For ``sys.setprofile``: functions of the package; the body of a module or of a class is no call."""
        if event != "call" or not frame.f_code.co_flags & inspect.CO_OPTIMIZED:
            return
        file = file_of(frame.f_code.co_filename)
        if file is None:
            return
        caller = next(callers(frame), None)
        if file not in self.behind:
            self.behind[file] = list(callers(frame))
        if caller is not None and caller != file:
            self.calls.add((caller, file))


@cache
def file_of(name: str) -> str | None:
    """The path of a file of the package below ``src/wrssl``; None for others."""
    path = Path(name)
    return path.relative_to(SOURCE).as_posix() if path.is_relative_to(SOURCE) else None


def callers(frame: FrameType) -> Iterator[str]:
    """The files of the package on the stack above a frame, the nearest caller first."""
    above = frame.f_back
    while above is not None:
        file = file_of(above.f_code.co_filename)
        if file is not None:
            yield file
        above = above.f_back


def is_ground(file: str) -> bool:
    """Whether the file belongs to the ground floor, on which every room stands."""
    return file.removesuffix(".py") in GROUND


@cache
def imports_of(file: str) -> dict[str, str]:
    """The names that a file imports from the package, each with the file that defines it."""
    found = {}
    for node in ast.walk(ast.parse((SOURCE / file).read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.split(".")[0] == "wrssl":
            for alias in node.names:
                found[alias.asname or alias.name] = home_of(node.module, alias.name)
    return found


def home_of(module: str, name: str) -> str:
    """The file that defines a name, where a package may hand it on."""
    submodule = path_of(f"{module}.{name}")
    if submodule is not None:
        return submodule
    file = path_of(module)
    assert file is not None, f"there is no module {module}"
    return imports_of(file).get(name, file) if file.endswith("__init__.py") else file


def path_of(module: str) -> str | None:
    """The file of a module, None where there is no such module."""
    place = SOURCE.joinpath(*module.split(".")[1:])
    for path in (place.with_suffix(".py"), place / "__init__.py"):
        if path.is_file():
            return path.relative_to(SOURCE).as_posix()
    return None


def walk(trace: Trace) -> dict[str, list[str]]:
    """The directing files in the order of their first call, each with the files that help it."""
    files = [file for file in trace.behind if not is_ground(file)]
    called: dict[str, set[str]] = {file: set() for file in files}
    for caller, file in trace.calls:
        if caller in called and file in called and file in imports_of(caller).values():
            called[caller].add(file)
    found: dict[str, list[str]] = {file: [] for file in files if len(called[file]) >= OTHERS}
    for file in files:
        if file not in found:
            found[next(caller for caller in trace.behind[file] if caller in found)].append(file)
    return found


def trace_fit(steps: int | str) -> Trace:
    """A default fit of the digits on the CPU, watched."""
    import wrssl.norm.native  # so that what is imported within the fit is there already
    import wrssl.training

    scenario = wrssl.load_scenario("digits", ood="patches", ratio=0.5, seed=0)
    trace = Trace()
    sys.setprofile(trace.watch)
    try:
        wrssl.training.fit(scenario, steps=steps, device="cpu")
    finally:
        sys.setprofile(None)
    return trace


def main() -> None:
    """Print the walk."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=60, help="optimizer steps per model; 2,000 go through the same")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    options = parser.parse_args()
    trace = trace_fit(options.steps)
    found = walk(trace)
    ground = [file for file in trace.behind if is_ground(file)]
    if options.json:
        print(json.dumps({"walk": found, "ground": ground}))
        return
    for file, helpers in found.items():
        print(f"| `{file}` | | | {', '.join(f'`{each}`' for each in helpers)} |")
    print(
        f"\n{len(found)} files direct, {sum(map(len, found.values()))} help, {len(ground)} belong to the ground floor."
    )


if __name__ == "__main__":
    main()
