"""An option of a run is one more field of ``FitConfig``: every door of the package then has it.

The program below adds one before anything else of the package is loaded, as a change of ``config.py`` would, and
reports what it finds. It needs a process of its own, since signatures are made when the rooms are imported.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

HELP = "The color of the thread."
PROGRAM = '''
from __future__ import annotations

import contextlib, io, json, os, sys
from dataclasses import dataclass

from wrssl import config


@dataclass(frozen=True)
class Wider(config.FitConfig):
    color: str = config.option("blue", "The color of the thread.", config.one_of("blue", "red"))


config.FitConfig = Wider

import inspect
import pydoc

import numpy as np

import wrssl
from wrssl.cli import main
from wrssl.training import plan_run, resume_run

found = {}
os.environ["WRSSL_SAVE_EVERY"] = "0"
os.environ["COLUMNS"] = "200"
moons = wrssl.load_scenario("moons", ood="faraway", ratio=0.5, seed=0, unlabeled_size=100)
fast = {"method": "entmin", "weights": "none", "steps": 4, "progress": False}


def refused(call):
    try:
        call()
    except wrssl.WRSSLError as error:
        return str(error)


def command(*arguments):
    """Exit code and what is printed."""
    sys.argv = ["wrssl", *arguments]
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(printed):
        try:
            main()
            code = 0
        except SystemExit as ended:
            code = ended.code
    return code, printed.getvalue()


class BreakOff(wrssl.training.Callback):
    def on_step(self, trainer, outcome):
        if trainer.done == 2:
            raise KeyboardInterrupt


def begin(out, **options):
    try:
        wrssl.fit(moons, **fast, **options, out=out, callbacks=[BreakOff()])
    except KeyboardInterrupt:
        return json.loads(open(f"{out}/config.json").read())


def doors(function):
    """The default in the signature, and the line of the option in help()."""
    parameter = inspect.signature(function).parameters["color"]
    lines = [line.strip() for line in pydoc.plain(pydoc.render_doc(function)).splitlines()]
    return [parameter.kind.name, parameter.default, next(line for line in lines if line.startswith("color:"))]


found["fit"], found["audit"] = doors(wrssl.fit), doors(wrssl.audit)
found["checked"] = refused(lambda: wrssl.fit(moons, **fast, color="green"))
found["plan"] = [plan_run(moons, Wider(**fast, **given))["config"]["color"] for given in ({}, {"color": "red"})]

found["stored"] = begin("red", color="red")["color"], begin("default")["color"]
again = {"out": "red", "resume": True}
found["resumed with another"] = refused(lambda: wrssl.fit(moons, **fast, **again))
found["resumed with the same"] = wrssl.fit(moons, **fast, **again, color="red").config["color"]
begin("from its directory", color="red")
found["resumed from its directory"] = resume_run("from its directory").config["color"]

# An older version did not know the option.
old = begin("old")
del old["color"]
text = json.dumps(old)
open("old/config.json", "w").write(text)
found["an old run with another"] = refused(lambda: wrssl.fit(moons, **fast, out="old", resume=True, color="red"))

X = np.r_[moons.labeled[0].numpy(), moons.unlabeled.numpy()]
y = np.r_[moons.labeled[1].numpy(), np.full(len(moons.unlabeled), -1)]
estimator = wrssl.WRSSLClassifier(method="entmin", weights="none", steps=2, random_state=0)
found["parameter"] = estimator.get_params()["color"]
found["estimator"] = [estimator.set_params(color=color).fit(X, y).result_.config["color"] for color in ("red", "blue")]
found["estimator checks"] = refused(lambda: estimator.set_params(color="green").fit(X, y))

given = ["--scenario", "moons", "--unlabeled-size", "100", "--method", "entmin", "--weights", "none", "--steps", "2"]
found["fit --help"], found["audit --help"] = (command(name, "--help")[1] for name in ("fit", "audit"))
found["fit --color"] = command("fit", *given, "--color", "red", "--out", "typed")[0]
found["typed"] = json.loads(open("typed/config.json").read())["color"]
found["fit --color green"] = command("fit", *given, "--color", "green")
found["dry run"] = command("fit", *given, "--color", "red", "--dry-run", "--json")[1]
found["report"] = open("typed/report.html").read()
print(json.dumps(found))
'''


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    """What the program reports, by the names that it gives."""
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], cwd=tmp_path_factory.mktemp("option"), env=environment, capture_output=True,
        text=True, timeout=280, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


@pytest.mark.parametrize("function", ["fit", "audit"])
def test_signature_and_help_have_it(found, function):
    assert found[function] == ["KEYWORD_ONLY", "blue", f"color: {HELP}"]


def test_its_check_is_made(found):
    assert found["checked"] == "There is no color 'green'; choose 'blue' or 'red'."


def test_the_dry_run_has_it(found):
    assert found["plan"] == ["blue", "red"]
    assert json.loads(found["dry run"])["config"]["color"] == "red"


def test_config_json_stores_it(found):
    assert found["stored"] == ["red", "blue"]


def test_a_resumed_run_compares_it(found):
    wrong = "was begun with color='red', not with 'blue'; give the same settings, or another run directory."
    assert found["resumed with another"].endswith(wrong)
    assert found["resumed with the same"] == "red"
    assert found["resumed from its directory"] == "red"


def test_a_run_that_is_older_than_the_option_has_its_default(found):
    assert "was begun with color='blue', not with 'red'" in found["an old run with another"]


def test_the_estimator_has_it(found):
    assert found["parameter"] == "blue"
    assert found["estimator"] == ["red", "blue"]
    assert found["estimator checks"] == found["checked"]


@pytest.mark.parametrize("command", ["fit --help", "audit --help"])
def test_the_command_line_lists_it(found, command):
    (line,) = [line for line in found[command].splitlines() if "--color" in line]
    assert HELP in line
    assert "[default: blue]" in line


def test_the_command_line_passes_it_on(found):
    assert found["fit --color"] == 0
    assert found["typed"] == "red"
    code, printed = found["fit --color green"]
    assert code == 2
    assert found["checked"] in printed


def test_the_report_repeats_it(found):
    assert "--color red" in found["report"]
