"""Two real processes on this machine, started by the command line."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time

import pandas as pd
import pytest
from safetensors.torch import load_file

pytest.importorskip("lightning_fabric")
COMMAND = [sys.executable, "-m", "wrssl", "fit"]
RUN = ["--scenario", "digits", "--ood", "patches", "--method", "pl", "--weights", "wr-cluster", "--no-fast"]
RUN += ["--threads", "1", "--no-fallback"]


def environment(**more):
    return {**os.environ, "OMP_NUM_THREADS": "1", **more}


def run(*arguments, **more):
    return subprocess.run(
        [*COMMAND, *map(str, arguments)], capture_output=True, text=True, timeout=300, env=environment(**more)
    )


def outcome(folder):
    metrics = json.loads((folder / "metrics.json").read_text())
    history = pd.read_csv(folder / "history.csv")
    verdicts = pd.read_csv(folder / "verdicts.csv")
    return metrics, history, verdicts, load_file(folder / "model.safetensors")


def assert_close(one, other):
    (m1, h1, v1, p1), (m2, h2, v2, p2) = outcome(one), outcome(other)
    assert m1["images_forwarded"] == m2["images_forwarded"]
    assert m1["test_accuracy"] == pytest.approx(m2["test_accuracy"], abs=0.01)
    for name in ("loss", "mean_weight", "val_loss"):
        assert h1[name].to_numpy() == pytest.approx(h2[name].to_numpy(), rel=5e-3, abs=5e-3), name
    assert v1["weight"].to_numpy() == pytest.approx(v2["weight"].to_numpy(), abs=0.01)
    for name, value in p1.items():
        assert value.float().sub(p2[name].float()).abs().max() < 0.02, name


@pytest.fixture(scope="module")
def alone(tmp_path_factory):
    folder = tmp_path_factory.mktemp("alone") / "run"
    done = run(*RUN, "--steps", 50, "--out", folder)
    assert done.returncode == 0, done.stderr
    return folder


def test_fifty_steps_equal_those_of_one_process(alone, tmp_path):
    done = run(*RUN, "--steps", 50, "--out", tmp_path / "run", "--devices", 2, "--strategy", "ddp")
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("test accuracy") == 1, "only one process talks"
    assert outcome(tmp_path / "run")[0]["world_size"] == 2
    assert_close(tmp_path / "run", alone)


def test_a_killed_process_ends_the_job_and_the_run_goes_on_alone(alone, tmp_path):
    folder = tmp_path / "run"
    command = [*COMMAND, *RUN, "--steps", "50", "--out", str(folder), "--devices", "2"]
    with subprocess.Popen(
        command, env=environment(WRSSL_SAVE_EVERY="0"), stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True
    ) as leader:
        while leader.poll() is None and len(list((folder / "state").glob("*.safetensors"))) < 2:
            time.sleep(0.02)
        assert leader.poll() is None, "over before it could be killed"
        children = subprocess.run(["pgrep", "-P", str(leader.pid)], capture_output=True, text=True, check=True)
        os.kill(int(children.stdout.split()[0]), signal.SIGKILL)
        _, said = leader.communicate(timeout=100)
        assert leader.returncode not in (0, None)
    assert "Traceback" not in said
    assert not (folder / "metrics.json").exists()
    done = run("--resume", folder, "--devices", 1)
    assert done.returncode == 0, done.stderr
    assert outcome(folder)[0]["world_size"] == 1
    assert_close(folder, alone)


def test_a_program_ends_its_group_before_python_ends(tmp_path):
    program = tmp_path / "program.py"
    program.write_text(
        "import atexit\n"
        "from torch import distributed\n"
        "from wrssl.parallel import launch\n"
        "atexit.register(lambda: print('open' if distributed.is_initialized() else 'ended', flush=True))\n"
        "devices = launch(2, 'ddp', '32-true', 'cpu')\n"
        "print('open' if distributed.is_initialized() else 'ended', flush=True)\n"
    )
    done = subprocess.run(
        [sys.executable, str(program)], capture_output=True, text=True, timeout=300, env=environment()
    )
    assert done.returncode == 0, done.stderr
    assert [done.stdout.count(word) for word in ("open", "ended")] == [2, 2], done.stdout
