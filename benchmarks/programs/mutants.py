"""Mutation testing of ``wrssl.norm`` and ``wrssl.hypergrad``: change one thing in the source; does a test fail?

    .venv/bin/python -m pip install cosmic-ray
    .venv/bin/python benchmarks/programs/mutants.py --out docs/results/campaign/mutants.csv
    .venv/bin/python benchmarks/programs/mutants.py --out docs/results/campaign/mutants.csv --again survived
    .venv/bin/python benchmarks/programs/mutants.py --out docs/results/campaign/mutants.csv --time
    .venv/bin/python benchmarks/programs/mutants.py --out docs/results/campaign/mutants.csv --page

Cosmic-ray finds the mutants and makes them, in a copy of the source; ``--count`` of them are drawn with ``--seed``,
from each file in proportion to how many it has. A mutant is tested by the part of the tests in ``PARTS``, which takes
less than ten seconds by itself (``--time`` measures that). A row is appended per mutant; one whose row is
there is not run again. ``--page`` writes a page beside the rows, with the reasons in ``mutant_reasons.json``.

    killed       a test fails, or the process dies
    timeout      no end within ``CPU`` seconds of processor time, or ``WALL`` seconds; counts as killed
    survived     all tests pass
    incompetent  pytest itself fails; left out of the share

Left out before the draw, because no test could or should tell them from the source: mutants that are no Python, and
those that differ in annotations, docstrings, ``__all__``, blocks under ``if TYPE_CHECKING`` or the words of an error
only. That is decided by the syntax tree without these (``bare``): where it is the same as before, so is the behavior.

The process that runs the tests is a fork of this one, which has loaded torch but not wrssl. Every mutated file gets a
time of change of its own, so that neither Python nor numba takes code that it compiled from another version.
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import csv
import difflib
import importlib
import json
import os
import pickle
import random
import re
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Iterable, Iterator
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple

os.environ["OMP_NUM_THREADS"] = "1"  # before torch is loaded: the forks must not wait for threads that they do not have
os.environ["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"  # what happens to be installed beside pytest costs a second

import pytest
from cosmic_ray.ast import ast_nodes, get_ast
from cosmic_ray.mutating import MutationVisitor, mutate_code
from cosmic_ray.plugins import get_operator, operator_names

ROOT = Path(__file__).resolve().parents[2]
REASONS = Path(__file__).with_name("mutant_reasons.json")
CPU, WALL, MEMORY = 40, 300, 8 << 30
COLUMNS = ("seed", "file", "line", "operator", "occurrence", "outcome", "seconds", "before", "after")
PYTEST = ("-x", "-q", "-p", "no:cacheprovider", "-p", "pytest_timeout")
LOADED = ("-W", "ignore::pytest.PytestAssertRewriteWarning")  # hypothesis is there already in a fork
LOADED_ONCE = {"torch", "numpy", "numba", "llvmlite", "scipy", "sklearn", "pandas", "hypothesis", "sympy", "mpmath"}
WORDS = ("killed", "timeout", "survived", "incompetent")

# What tests the files of a folder: quick and general tests first. Left out are slow ones, most of them by finite
# differences of second derivatives, and options of a long product of cases.
PARTS = {
    "src/wrssl/norm": [
        "tests/norm/test_rows.py",
        "tests/norm/test_counts.py",
        "tests/norm/test_table.py",
        "tests/norm/test_policies.py",
        "tests/norm/test_parts.py",
        "tests/norm/test_identities.py",
        "tests/norm/test_edges.py",
        "tests/norm/test_table_tangent.py",
        "tests/norm/test_native_routes.py",
        "tests/norm/test_convert.py",
        "tests/norm/test_native_stability.py",
        "tests/norm/test_native.py",
        "tests/norm/test_channels_last.py",
        "tests/norm/test_torch_inputs.py",
        "--deselect=tests/norm/test_identities.py::test_first_and_second_derivatives[native-1d-",
        "--deselect=tests/norm/test_identities.py::test_first_and_second_derivatives[composed-1d-",
        "--deselect=tests/norm/test_identities.py::test_first_and_second_derivatives[native-2d",
        "--deselect=tests/norm/test_identities.py::test_first_and_second_derivatives[composed-2d",
        "--deselect=tests/norm/test_identities.py::test_first_and_second_derivatives[native-3d",
        "--deselect=tests/norm/test_identities.py::test_first_and_second_derivatives[composed-3d",
        "--deselect=tests/norm/test_native_routes.py::test_second_derivatives",
        "--deselect=tests/norm/test_native_routes.py::test_transforms_of_torch_func",
        "--deselect=tests/norm/test_convert.py::test_nested_layers_there_and_back",
        "--deselect=tests/norm/test_native.py::test_same_numbers[{'momentum'",
        "--deselect=tests/norm/test_native.py::test_same_numbers[{'track_running_stats'",
    ],
    "src/wrssl/hypergrad": [
        "tests/hypergrad/test_logit_losses.py",
        "tests/hypergrad/test_linear_solvers.py",
        "tests/hypergrad/test_stationary_point.py",
        "tests/hypergrad/test_implicit_hypergradient.py",
        "tests/hypergrad/test_head_problem.py",
        "tests/hypergrad/test_logit_problem.py",
        "tests/hypergrad/test_logit_problem_without_labels.py",
        "tests/hypergrad/test_network_problem.py",
        "tests/hypergrad/test_cluster_gradients.py",
        "tests/hypergrad/test_hypergradient_check.py",
        "tests/hypergrad/test_hypergradient_request.py",
        "tests/hypergrad/test_outer_loss.py",
        "--deselect=tests/hypergrad/test_network_problem.py::test_the_three_solvers_agree_near_a_minimum",
        "--deselect=tests/hypergrad/test_head_problem.py::test_mixed_term_is_double_backward_and_forward_mode",
        "--deselect=tests/hypergrad/test_cluster_gradients.py::test_segment_sum_is_autograd_through_the_table",
    ],
}
FIRST = {
    "check.py": "tests/hypergrad/test_hypergradient_check.py",
    "forward.py": "tests/hypergrad/test_hypergradient_check.py",
    "head.py": "tests/hypergrad/test_head_problem.py",
    "implicit.py": "tests/hypergrad/test_implicit_hypergradient.py",
    "logit_losses.py": "tests/hypergrad/test_logit_losses.py",
    "network.py": "tests/hypergrad/test_logit_problem.py",
    "outer.py": "tests/hypergrad/test_outer_loss.py",
    "problem.py": "tests/hypergrad/test_head_problem.py",
    "request.py": "tests/hypergrad/test_hypergradient_request.py",
    "solvers.py": "tests/hypergrad/test_linear_solvers.py",
    "composed.py": "tests/norm/test_identities.py",
    "context.py": "tests/norm/test_edges.py",
    "layers.py": "tests/norm/test_edges.py",
    "native.py": "tests/norm/test_native.py",
    "policies.py": "tests/norm/test_policies.py",
    "moments.py": "tests/norm/test_counts.py",
    "table.py": "tests/norm/test_table.py",
}


class Mutant(NamedTuple):
    """One change of one file."""

    file: str
    line: int
    operator: str
    occurrence: int

    @property
    def name(self) -> str:
        """What the reasons are filed under."""
        return f"{self.file} {self.operator} {self.occurrence}"


class _Bare(ast.NodeTransformer):
    """Removes what no test can see."""

    def visit_arg(self, node: ast.arg) -> ast.AST:
        node.annotation = None
        return node

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.AST:
        node.annotation = ast.Constant(None)
        return self.generic_visit(node)

    def visit_Raise(self, node: ast.Raise) -> ast.AST:
        if isinstance(node.exc, ast.Call):
            node.exc = node.exc.func
        return self.generic_visit(node)

    def visit_If(self, node: ast.If) -> ast.AST | None:
        return None if isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING" else self.generic_visit(node)

    def visit_Assign(self, node: ast.Assign) -> ast.AST | None:
        names = [target.id for target in node.targets if isinstance(target, ast.Name)]
        return None if names == ["__all__"] else self.generic_visit(node)

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        node.returns = None
        return self.generic_visit(node)

    def visit_Expr(self, node: ast.Expr) -> ast.AST | None:
        return None if isinstance(node.value, ast.Constant) else self.generic_visit(node)


def bare(code: str) -> str:
    """The syntax tree of a file without annotations, docstrings, ``__all__``, type-checking blocks and error words."""
    return ast.dump(_Bare().visit(ast.parse(code)))


def mutants_of(file: str) -> Iterator[Mutant]:
    """All mutants of a file that could matter, each once."""
    code = (ROOT / file).read_text(encoding="utf-8")
    tree, seen = get_ast(code), {bare(code)}
    stored = pickle.dumps(tree)  # a mutant changes its tree; to load one is quicker than to parse again
    for name in sorted(operator_names()):
        operator_class = get_operator(name)
        if operator_class.arguments():  # two operators that need to be told names of variables
            continue
        operator = operator_class()
        positions = (place for node in ast_nodes(tree) for place in operator.mutation_positions(node))
        for occurrence, (start, _) in enumerate(positions):
            try:
                visitor = MutationVisitor(occurrence, operator)
                changed = bare(visitor.walk(pickle.loads(stored)).get_code())
            except SyntaxError:
                continue
            if changed not in seen:
                seen.add(changed)
                yield Mutant(file, start[0], name.removeprefix("core/"), occurrence)


def draw(count: int, seed: int) -> list[Mutant]:
    """So many mutants, from each file in proportion to how many it has (largest remainders), in the order of files."""
    files = [str(path.relative_to(ROOT).as_posix()) for part in PARTS for path in sorted((ROOT / part).rglob("*.py"))]
    found = {file: list(mutants_of(file)) for file in files}
    total = sum(map(len, found.values()))
    quota = {file: count * len(mutants) / total for file, mutants in found.items()}
    sizes = {file: int(q) for file, q in quota.items()}
    for file in sorted(files, key=lambda file: sizes[file] - quota[file])[: count - sum(sizes.values())]:
        sizes[file] += 1
    print(f"{total} mutants in {len(files)} files; {count} drawn with seed {seed}", flush=True)
    generator = random.Random(seed)
    return [mutant for file in files for mutant in sorted(generator.sample(found[file], sizes[file]))]


class Copy:
    """The source and its tests in a folder of their own, where files are changed."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.number = folder, 0
        for name in ("src", "tests"):
            shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
        for name in ("pyproject.toml", "conftest.py"):
            shutil.copy(ROOT / name, folder)

    def test(self, mutant: Mutant) -> dict[str, Any]:
        """Make the mutant, run its tests, put the file back; a row."""
        path, original = self.folder / mutant.file, (ROOT / mutant.file).read_text(encoding="utf-8")
        changed = mutate_code(original, get_operator(f"core/{mutant.operator}")(), mutant.occurrence)
        assert changed is not None, mutant
        times = path.stat()
        self.number += 1
        path.write_text(changed, encoding="utf-8")
        os.utime(path, (times.st_atime, times.st_mtime + 10 * self.number))
        try:
            outcome, seconds = self.run(mutant.file)
        finally:
            path.write_text(original, encoding="utf-8")
            os.utime(path, (times.st_atime, times.st_mtime))
        before, after = short_difference(original, changed)
        return {
            **mutant._asdict(), "outcome": outcome, "seconds": f"{seconds:.1f}", "before": before, "after": after
        }  # fmt: skip

    def run(self, file: str) -> tuple[str, float]:
        """How the tests of a file end, and their processor time."""
        process = os.fork()
        if process == 0:
            self._child(file)
        start, used = time.monotonic(), None
        while True:
            ended, status, used = os.wait4(process, os.WNOHANG)
            if ended:
                break
            if time.monotonic() - start > WALL:
                os.killpg(process, signal.SIGKILL)
            time.sleep(0.02)
        code, seconds = os.waitstatus_to_exitcode(status), used.ru_utime + used.ru_stime
        if code == -signal.SIGXCPU or (code == -signal.SIGKILL and time.monotonic() - start > WALL):
            return "timeout", seconds
        if code == WRONG_SOURCE:
            raise SystemExit("the tests did not import the copy")
        # 0 passed, 1 failed, 2 an import failed, 4 that of a conftest.py, below 0 a signal; 3 and 5 are pytest's own
        return ("survived" if code == 0 else "killed" if code in (1, 2, 4) or code < 0 else "incompetent"), seconds

    def _child(self, file: str) -> None:
        """In the fork: no way back from here."""
        os.setpgid(0, 0)
        resource.setrlimit(resource.RLIMIT_CPU, (CPU, CPU + 5))
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
        os.chdir(self.folder)
        log = os.open(self.folder / "log", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        os.dup2(log, 1)
        os.dup2(log, 2)
        sys.path.insert(0, str(self.folder / "src"))
        code = 3
        try:
            code = int(pytest.main([*tests_of(file), *PYTEST, *LOADED]))
            (self.folder / "modules").write_text("\n".join(sys.modules))
            place = sys.modules["wrssl"].__file__ or ""
            if not place.startswith(str(self.folder)):
                code = WRONG_SOURCE
        except BaseException:
            traceback.print_exc()
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(code)


WRONG_SOURCE = 77


def tests_of(file: str) -> list[str]:
    """What pytest is given for a file; the tests that are about it first."""
    (tests,) = (tests for part, tests in PARTS.items() if file.startswith(part + "/"))
    return sorted(tests, key=lambda test: test != FIRST.get(file.rpartition("/")[2]))


def alone(part: str) -> dict[str, Any]:
    """The tests of a part in a process of their own, on the source as it is: a row with the time that pytest reports.

    The least of three, since other work on the machine makes any time longer.
    """
    command, times, passed = [sys.executable, "-m", "pytest", *PARTS[part], *PYTEST, "-v"], [], True
    for _ in range(3):
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
        passed &= done.returncode == 0
        times.append(float(re.findall(r" in ([0-9.]+)s", done.stdout)[-1]))
    word = "passed" if passed else "failed"
    return {"file": part, "operator": "none", "outcome": word, "seconds": f"{min(times):.1f}"}


def short_difference(original: str, changed: str, width: int = 100) -> tuple[str, str]:
    """The lines that differ, before and after, without spaces around them."""
    old, new = original.splitlines(), changed.splitlines()
    parts: tuple[list[str], list[str]] = ([], [])
    for word, a, b, c, d in difflib.SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        if word != "equal":
            parts[0].extend(line.strip() for line in old[a:b])
            parts[1].extend(line.strip() for line in new[c:d])
    before, after = (" ".join(part) for part in parts)
    return _around(before, after, width), _around(after, before, width)


def _around(text: str, other: str, width: int) -> str:
    """A long text around the place where it differs from another."""
    place = next((i for i, (a, b) in enumerate(zip(text, other, strict=False)) if a != b), min(len(text), len(other)))
    start = max(0, min(place - width // 2, len(text) - width))
    return ("… " if start else "") + text[start : start + width] + (" …" if start + width < len(text) else "")


def read(path: Path) -> list[dict[str, str]]:
    if not path.exists():
        return []
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def write(path: Path, rows: Iterable[dict[str, Any]], mode: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    fresh = mode == "w" or not path.exists()
    with path.open(mode, newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
        if fresh:
            writer.writeheader()
        writer.writerows(rows)


def mutant_in(row: dict[str, str]) -> Mutant:
    return Mutant(row["file"], int(row["line"]), row["operator"], int(row["occurrence"]))


def run_all(args: argparse.Namespace) -> None:
    """Run what has no row yet, or what ``--again`` names."""
    rows = read(args.out)
    if args.again:
        drawn = [mutant_in(row) for row in mutated(rows) if row["outcome"] == args.again]
        rows = [row for row in rows if row["outcome"] != args.again]
    else:
        drawn = draw(args.count, args.seed)
    done = {mutant_in(row) for row in mutated(rows)}
    write(args.out, rows, "w")
    with tempfile.TemporaryDirectory(prefix="wrssl-mutants-") as folder:
        copy = Copy(Path(folder))
        for part in PARTS:  # compiles what numba compiles, and makes sure that the copy passes
            if (result := copy.run(f"{part}/"))[0] != "survived":
                raise SystemExit(f"{part}: {result[0]} without any mutant\n{(copy.folder / 'log').read_text()[-2000:]}")
            preload((copy.folder / "modules").read_text().split())
        for mutant in drawn:
            if mutant not in done:
                row = copy.test(mutant)
                write(args.out, [{**row, "seed": args.seed}], "a")
                print(f"{row['outcome']:9} {row['seconds']:>5} {mutant.file}:{mutant.line} {row['after']}", flush=True)


def preload(names: Iterable[str]) -> None:
    """Load what tests have loaded, except for what is tested and the tests: once for all forks."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name in names:
            if name.partition(".")[0] in LOADED_ONCE:
                with contextlib.suppress(Exception):
                    importlib.import_module(name)


def mutated(rows: Iterable[dict[str, str]]) -> list[dict[str, str]]:
    """Without the runs of the source as it is."""
    return [row for row in rows if row["operator"] != "none"]


def share(counts: Counter[str]) -> str:
    """Killed and timed out, of all that could be run."""
    valid = sum(counts.values()) - counts["incompetent"]
    return f"{100 * (counts['killed'] + counts['timeout']) / valid:.1f} %" if valid else ""


def kind(operator: str) -> str:
    """A word for an operator of cosmic-ray."""
    for start, word in (
        ("ReplaceBinary", "arithmetic"),
        ("ReplaceComparison", "comparison"),
        ("ReplaceUnary", "sign or not"),
        ("AddNot", "sign or not"),
        ("Number", "number"),
    ):
        if operator.startswith(start):
            return word
    return "other"


def table(rows: list[dict[str, str]], column: str, title: str) -> list[str]:
    """Counts per value of a column, and of all."""
    groups: dict[str, Counter[str]] = {}
    for row in rows:
        groups.setdefault(row[column], Counter())[row["outcome"]] += 1
    lines = [f"| {title} | drawn | killed | of these by time | survived | share killed |", "|---|---|---|---|---|---|"]
    for name, counts in (*sorted(groups.items()), ("all", sum(groups.values(), Counter[str]()))):
        cells = (
            sum(counts.values()) - counts["incompetent"], counts["killed"] + counts["timeout"], counts["timeout"],
            counts["survived"], share(counts),
        )  # fmt: skip
        lines.append(f"| {name} | " + " | ".join(map(str, cells)) + " |")
    return lines


def page(rows: list[dict[str, str]], reasons: dict[str, str]) -> str:
    """What the rows say."""
    ran = [
        {**row, "kind": kind(row["operator"]), "short": row["file"].removeprefix("src/wrssl/")}
        for row in sorted(mutated(rows), key=mutant_in)
    ]
    counts = Counter(row["outcome"] for row in ran)
    versions = ", ".join(f"{name} {version(name)}" for name in ("cosmic-ray", "pytest", "torch", "numba"))
    times = " and ".join(f"{row['seconds']} s for `{row['file']}`" for row in rows if row["operator"] == "none")
    lines = [
        "# Mutants",
        "",
        "Does a test fail when something in the source of `wrssl.norm` or `wrssl.hypergrad` is changed? Each mutant is "
        "one change, such as a minus for a plus, another number, a condition turned round.",
        "",
        f"**{share(counts)} of {counts.total() - counts['incompetent']} mutants are killed**, {counts['timeout']} of "
        f"them because the tests did not end; {counts['survived']} survive.",
        "",
        f"* Drawn: {counts.total()} with seed {', '.join(sorted({row['seed'] for row in ran}))}, from each file in "
        f"proportion to how many it has; {counts['incompetent']} of them could not be run and are not counted. Mutants "
        "that differ in annotations, docstrings, `__all__` or the words of an error only are not drawn from.",
        "* Tests: a part of `tests/norm` and `tests/hypergrad`, stated in `benchmarks/programs/mutants.py`. One run on "
        f"the source as it is takes, by pytest's own clock, the least of three: {times}. Loading Python and torch is "
        "not in it; the process that tests the mutants has them loaded.",
        f"* Made with Python {sys.version.split()[0]}, {versions}. The rows are in `mutants.csv`; `seconds` there is "
        "processor time without the start.",
        "",
        "```",
        *(
            f"python benchmarks/programs/mutants.py --out docs/results/campaign/mutants.csv{option}"
            for option in ("", " --page")
        ),
        "```",
        "",
        "## By file",
        "",
        *table(ran, "short", "file"),
        "",
        "## By kind of change",
        "",
        *table(ran, "kind", "what is changed"),
        "",
        "## Survivors",
        "",
        "| place | before | after | why no test fails |",
        "|---|---|---|---|",
    ]
    for row in ran:
        if row["outcome"] == "survived":
            cells = (f"`{row[name].replace('|', chr(92) + '|')}`" for name in ("before", "after"))
            reason = reasons.get(mutant_in(row).name, "not looked at")
            lines.append(f"| {row['short']}:{row['line']} | {' | '.join(cells)} | {reason} |")
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, required=True, help="a CSV file; rows are appended")
    parser.add_argument("--count", type=int, default=320)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--again", choices=WORDS, help="run the mutants with this outcome once more")
    parser.add_argument("--time", action="store_true", help="only measure the time of the tests without any mutant")
    parser.add_argument("--page", action="store_true", help="only write the page of the rows beside them")
    args = parser.parse_args()
    if args.time:
        write(args.out, [*map(alone, PARTS), *mutated(read(args.out))], "w")
    elif not args.page:
        run_all(args)
    rows = read(args.out)
    if args.page:
        reasons = json.loads(REASONS.read_text(encoding="utf-8"))
        args.out.with_suffix(".md").write_text(page(rows, reasons), encoding="utf-8")
    counts = Counter(row["outcome"] for row in mutated(rows))
    print(", ".join(f"{counts[word]} {word}" for word in WORDS), f"of {counts.total()} drawn: {share(counts)} killed")


if __name__ == "__main__":
    main()
