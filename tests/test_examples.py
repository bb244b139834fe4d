"""Every example runs by itself; the own loop is short and better than the plain one; additions are short plug-ins."""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

FOLDER = Path(__file__).resolve().parents[1] / "examples"
ADDITIONS = {path.stem: path for path in sorted((FOLDER / "extend").glob("*.py"))}
EXAMPLES = [*sorted(FOLDER.glob("*.py")), *ADDITIONS.values()]
OWN_LOOP = FOLDER / "own_loop.py"
LONGEST = 40  # lines of an addition


def printed_by(*command: str) -> str:
    """What Python prints with these arguments."""
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        [sys.executable, "-W", "error", *command], env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@cache
def output_of(path: Path) -> str:
    """What the example prints; it runs once for all tests."""
    return printed_by(str(path))


def numbers_of(name: str) -> list[float]:
    """The numbers that an addition prints."""
    return [float(number) for number in re.findall(r"\d+(?:\.\d+)?", output_of(ADDITIONS[name]))]


def test_the_examples_that_the_guides_promise_are_there():
    names = {path.stem for path in EXAMPLES}
    assert {"own_loop", "own_embedding", "module_embedder", "estimator_pipeline"} <= names


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_example_runs_and_says_something(path, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert output_of(path).strip()
    assert not list(tmp_path.iterdir()), "an example leaves files behind"


def test_the_own_loop_adds_fewer_than_20_lines():
    lines = OWN_LOOP.read_text(encoding="utf-8").splitlines()
    added = [line for line in lines if re.search(r"# \+(  # fmt: skip)?$", line)]
    imports = [line for line in lines if line.startswith("from wrssl.")]
    assert len(added) >= 5
    assert len(added) + len(imports) < 20
    for part in ("convert_batchnorm(", "fit_prior(", "sample_weights(", "head_hypergradient("):
        assert any(part in line for line in added), f"{part}…) is used without a mark"


def test_the_robust_loop_is_better_than_the_plain_one():
    plain, robust = map(float, re.findall(r"([\d.]+) %", output_of(OWN_LOOP)))
    assert robust > plain


def test_there_is_an_example_of_every_addition():
    assert set(ADDITIONS) == {"a_method", "a_weighting", "a_prior", "a_model", "a_source", "a_callback"}


@pytest.mark.parametrize("name", ADDITIONS)
def test_an_addition_is_one_short_file_with_a_docstring_and_one_decorator(name):
    text = ADDITIONS[name].read_text(encoding="utf-8")
    assert len(text.splitlines()) <= LONGEST
    tree = ast.parse(text)
    assert ast.get_docstring(tree)
    (defined,) = [node for node in tree.body if isinstance(node, (ast.ClassDef, ast.FunctionDef))]
    assert ast.get_docstring(defined)
    decorators = [ast.unparse(decorator) for decorator in defined.decorator_list]
    kind = name.removeprefix("a_")
    if kind == "callback":
        assert not decorators
        assert [ast.unparse(base) for base in defined.bases] == ["wrssl.Callback"]
    else:
        (decorator,) = decorators
        assert decorator.startswith(f"wrssl.register_{kind}(")


@pytest.mark.parametrize("name", ADDITIONS)
def test_the_page_about_extending_shows_the_example_as_it_is(name):
    page = (FOLDER.parent / "docs" / "extending.md").read_text(encoding="utf-8")
    shown = ADDITIONS[name].read_text(encoding="utf-8").split("\n\nif __name__")[0].rstrip()
    assert f"```python\n{shown}\n```" in page


def test_the_method_and_the_model_from_outside_learn():
    (method,), (model,) = numbers_of("a_method"), numbers_of("a_model")
    assert method > 0.8
    assert model > 0.8


def test_the_prior_and_the_source_from_outside_find_foreign_rows():
    (of_prior,), (_, of_source) = numbers_of("a_prior"), numbers_of("a_source")
    assert of_prior > 0.95
    assert of_source > 0.95


def test_the_weighting_from_outside_has_a_fallback_and_weights_that_tell_members_apart():
    returned = re.search(r"returned: (\w+)", output_of(ADDITIONS["a_weighting"]))[1]
    assert returned in ("weighted", "plain", "supervised")  # "None" without ``guarded``
    assert numbers_of("a_weighting")[-1] > 0.6


def test_the_callback_ends_the_run_three_evaluations_after_the_best():
    done, steps, best = numbers_of("a_callback")
    assert done == best + 3 * steps / 20
    assert done < steps


def test_additions_are_chosen_by_name_on_the_command_line():
    plugins = [word for path in ADDITIONS.values() for word in ("--plugin", str(path))]
    chosen = ["--scenario", "rings", "--method", "committee", "--model", "two-layers", "--weights", "prior"]
    options = ["--weight-option", "kinds=linear,cosine", "--method-option", "T=0.4", "--steps", "2"]
    assert "test accuracy" in printed_by("-m", "wrssl", "fit", *plugins, *chosen, *options)
    assert "steady" in printed_by("-m", "wrssl", "methods", "--plugin", str(ADDITIONS["a_weighting"]))
