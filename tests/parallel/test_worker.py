"""Which processes are workers: those of a run with several devices, and no other."""

from __future__ import annotations

import fcntl
import json
import os
import subprocess
import sys

import pytest

from wrssl.worker import leading

ASK = "import sys; from wrssl.worker import is_worker; print(is_worker(), is_worker(2), 'torch' in sys.modules)"
FIT = [sys.executable, "-m", "wrssl", "fit", "--scenario", "moons", "--ood", "faraway", "--steps", "5"]
FIT += ["--weights", "none", "--threads", "1"]
FOREIGN = {"LOCAL_RANK": "1", "RANK": "5", "NODE_RANK": "1", "WORLD_SIZE": "8"}  # of another launcher


def run(command, **environment):
    given = {**os.environ, "OMP_NUM_THREADS": "1", **environment}
    return subprocess.run(command, capture_output=True, text=True, timeout=300, env=given)


@pytest.mark.parametrize(
    ("environment", "alone", "of_two"),
    [
        ({}, False, False),
        (FOREIGN, False, True),
        ({"LOCAL_RANK": "0", "RANK": "0"}, False, False),
        ({"LOCAL_RANK": "0", "RANK": "2"}, False, True),
        ({"RANK": "1"}, False, False),  # without a local rank nothing was launched from outside
        ({"WRSSL_LEADER": "1"}, True, True),
    ],
)
def test_a_worker_is_recognized_without_torch(environment, alone, of_two):
    assert run([sys.executable, "-c", ASK], **environment).stdout.split() == [str(alone), str(of_two), "False"]


@pytest.mark.parametrize("before", [None, "7"])
def test_the_mark_is_in_the_environment_only_meanwhile(before, monkeypatch):
    monkeypatch.delenv("WRSSL_LEADER", raising=False)
    if before is not None:
        monkeypatch.setenv("WRSSL_LEADER", before)
    with leading():
        assert os.environ["WRSSL_LEADER"] == str(os.getpid())
    assert os.environ.get("WRSSL_LEADER") == before


def test_a_single_run_under_another_launcher_talks_and_writes(tmp_path):
    done = run([*FIT, "--out", str(tmp_path / "run")], **FOREIGN)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("test accuracy") == 1
    assert json.loads((tmp_path / "run" / "metrics.json").read_text())["world_size"] == 1
    again = run([*FIT[:4], "--resume", str(tmp_path / "run")], **FOREIGN)
    assert again.stdout == done.stdout


def test_a_single_run_under_another_launcher_respects_the_lock(tmp_path):
    (tmp_path / "state").mkdir()
    with open(tmp_path / "state" / "lock", "ab") as file:
        fcntl.flock(file.fileno(), fcntl.LOCK_EX)
        done = run([*FIT, "--out", str(tmp_path)], **FOREIGN)
    assert done.returncode == 2
    assert done.stderr.startswith(f"wrssl: {tmp_path} is in use by another process")
    assert not (tmp_path / "config.json").exists()


def test_programs_that_a_run_starts_later_are_no_workers(tmp_path):
    pytest.importorskip("lightning_fabric")
    program = tmp_path / "program.py"
    program.write_text(
        "import os, subprocess, sys\n"
        "from wrssl.parallel import is_worker, launch\n"
        "before = is_worker()\n"
        "devices = launch(2, 'ddp', '32-true', 'cpu')\n"
        f"later = subprocess.run([sys.executable, '-c', {ASK!r}], capture_output=True, text=True).stdout.split()[0]\n"
        "print(f'{devices.group.rank} {before} {is_worker()} {later} {\"WRSSL_LEADER\" in os.environ}', flush=True)\n"
    )
    done = run([sys.executable, str(program)])
    assert done.returncode == 0, done.stderr
    assert sorted(done.stdout.splitlines()) == ["0 False False False False", "1 True True False False"]


def test_of_processes_from_an_external_launcher_the_first_one_talks(tmp_path):
    pytest.importorskip("lightning_fabric")
    launcher = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", "-m"]
    done = run([*launcher, *FIT[2:], "--out", str(tmp_path / "run"), "--devices", "2"])
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("test accuracy") == 1
    assert json.loads((tmp_path / "run" / "metrics.json").read_text())["world_size"] == 2
