"""Real processes, real signals: ``wrssl fit`` is stopped at different moments and resumed until it is finished."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
import warnings

import pandas as pd
import pytest

import wrssl
from wrssl.cli import main

SETTINGS = {"weights": "wr-cluster", "method": "pl", "steps": 60}
ARGUMENTS = ["fit", "--scenario", "moons", "--ood", "faraway"]
ARGUMENTS += [word for name, value in SETTINGS.items() for word in (f"--{name}", str(value))]
ENVIRONMENT = {**os.environ, "OMP_NUM_THREADS": "1", "WRSSL_SAVE_EVERY": "0"}  # a state after every step


def start(*arguments):
    command = [sys.executable, "-m", "wrssl", *arguments]
    return subprocess.Popen(command, env=ENVIRONMENT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def wait_for(process, arrived):
    """Until something is there; a process that ends before is an error."""
    while not arrived():
        assert process.poll() is None, process.communicate()
        time.sleep(0.001)


def newest_step(folder):
    """Of the states in a run directory; 0 where there are none."""
    return max((int(path.name[:9]) for path in folder.glob("state/0*.safetensors")), default=0)


def outcome(folder):
    metrics = json.loads((folder / "metrics.json").read_text())
    history = pd.read_csv(folder / "history.csv").drop(columns="seconds").to_csv()
    files = [(folder / name).read_bytes() for name in ("model.safetensors", "verdicts.csv", "config.json")]
    return files, {k: v for k, v in metrics.items() if k != "seconds_per_step"}, history


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    out = tmp_path_factory.mktemp("whole") / "run"
    wrssl.fit(wrssl.load_scenario("moons", ood="faraway"), **SETTINGS, out=out)
    return outcome(out)


@pytest.fixture
def resume(monkeypatch, capsys):
    """The command in this process, which saves a start: exit code and what is said on standard error."""

    def run(folder):
        monkeypatch.setattr(sys, "argv", ["wrssl", "fit", "--resume", str(folder)])
        with warnings.catch_warnings():
            warnings.simplefilter("default")
            with pytest.raises(SystemExit) as ended:
                main()
        return ended.value.code, capsys.readouterr().err

    return run


def test_killed_three_times_and_resumed_until_finished(whole, resume, tmp_path):
    out = tmp_path / "run"
    moment = random.Random(7)
    command = [*ARGUMENTS, "--out", str(out)]
    for arrived in (
        lambda: (out / "config.json").exists(),
        lambda: newest_step(out) >= 20,
        lambda: (out / "model.safetensors").exists(),  # the first of the results
    ):
        process = start(*command)
        wait_for(process, arrived)
        time.sleep(moment.uniform(0, 0.01))
        process.kill()
        process.communicate()
        assert process.returncode == -signal.SIGKILL
        assert not (out / "metrics.json").exists()
        command = ["fit", "--resume", str(out)]
    assert newest_step(out) == 60
    assert resume(out) == (0, "")
    assert outcome(out) == whole
    assert not list(out.rglob("*.part"))


def test_a_run_in_use_is_refused_and_sigterm_stores_it(whole, resume, tmp_path):
    out = tmp_path / "run"
    with start(*ARGUMENTS, "--out", str(out)) as process:
        wait_for(process, lambda: newest_step(out) >= 5)
        refused = resume(out)
        process.terminate()
        _, said = process.communicate(timeout=200)
    assert refused == (2, f"wrssl: {out} is in use by another process; wait until that ends, or stop it.\n")
    assert process.returncode == 143
    assert said.splitlines()[-1].startswith("wrssl: Stopped after step ")
    assert said.splitlines()[-1].endswith(f" of 60; go on: wrssl fit --resume {out}")
    newest = max(out.glob("state/0*.safetensors"))
    newest.write_bytes(newest.read_bytes()[:-1])
    code, said = resume(out)
    assert (code, len(said.splitlines())) == (0, 1)
    assert said.startswith(f"note: the state file {newest} (its checksum is wrong) cannot be used; going on from step ")
    assert outcome(out) == whole
