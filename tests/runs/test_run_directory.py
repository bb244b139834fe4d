"""A run directory belongs to one process at a time, and to none when that process is gone."""

from __future__ import annotations

import errno
import fcntl
import subprocess
import sys
import threading

import pytest

from wrssl.api import OptionError
from wrssl.runs.directory import check_free, lock_run, new_run

# Holds the lock of a folder until it is killed; needs none of the package.
HOLD = """
import fcntl, sys
file = open(sys.argv[1], "ab")
fcntl.flock(file.fileno(), fcntl.LOCK_EX)
print("held", flush=True)
sys.stdin.read()
"""


def hold(folder):
    (folder / "state").mkdir(parents=True, exist_ok=True)
    command = [sys.executable, "-c", HOLD, str(folder / "state" / "lock")]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdout.readline() == "held\n"
    return process


def test_a_folder_in_use_is_refused_until_its_process_is_killed(tmp_path):
    with hold(tmp_path) as process:
        with pytest.raises(OptionError, match="in use by another process"), lock_run(tmp_path):
            pytest.fail("two processes have it")
        with pytest.raises(OptionError, match="in use by another process"), new_run(tmp_path, {}):
            pytest.fail("two processes have it")
        process.kill()
        process.wait()
    with lock_run(tmp_path):
        pass
    assert [p.name for p in (tmp_path / "state").iterdir()] == ["lock"]
    assert (tmp_path / "state" / "lock").read_bytes() == b""


def test_the_holder_may_ask_again_but_not_another_thread(tmp_path):
    def elsewhere():
        try:
            with lock_run(tmp_path):
                answers.append("ours")
        except OptionError:
            answers.append("refused")

    answers = []
    with lock_run(tmp_path):
        with lock_run(tmp_path / "state" / ".."):
            pass
        thread = threading.Thread(target=elsewhere)
        thread.start()
        thread.join()
    elsewhere()
    assert answers == ["refused", "ours"]


def test_it_is_let_go_after_an_error(tmp_path):
    with pytest.raises(ZeroDivisionError), lock_run(tmp_path):
        raise ZeroDivisionError
    with open(tmp_path / "state" / "lock", "ab") as other:
        with lock_run(tmp_path), pytest.raises(BlockingIOError):  # taken anew, and not only believed to be
            fcntl.flock(other.fileno(), fcntl.LOCK_EX | fcntl.LOCK_NB)
        fcntl.flock(other.fileno(), fcntl.LOCK_EX | fcntl.LOCK_NB)


def test_a_file_system_without_locks_is_said_and_used(tmp_path, monkeypatch):
    def none(*_):
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(fcntl, "flock", none)
    with pytest.warns(UserWarning, match="No locks available"), lock_run(tmp_path):
        pass


def test_a_new_run_has_its_settings_first(tmp_path):
    with new_run(tmp_path / "RUN", {"seed": 3}):
        assert (tmp_path / "RUN" / "config.json").read_text() == '{\n  "seed": 3\n}\n'
    with pytest.raises(OptionError, match="not empty"), new_run(tmp_path / "RUN", {}):
        pytest.fail("it holds a run")


def test_the_quicker_one_wins(tmp_path, monkeypatch):
    """Another process finds the same empty folder, and is done before this one has the lock."""
    folder, take = tmp_path / "RUN", fcntl.flock

    def slowly(*arguments):
        (folder / "config.json").write_text("theirs")
        take(*arguments)

    monkeypatch.setattr(fcntl, "flock", slowly)
    with pytest.raises(OptionError, match="not empty"), new_run(folder, {}):
        pytest.fail("two runs in one folder")
    assert (folder / "config.json").read_text() == "theirs"


def test_what_a_killed_start_leaves_counts_as_empty(tmp_path):
    (tmp_path / "state").mkdir()
    check_free(tmp_path)
    (tmp_path / "state" / "lock").touch()
    (tmp_path / ".config.json.part").write_text("{")
    check_free(tmp_path)
    with new_run(tmp_path, {}):
        assert sorted(p.name for p in tmp_path.iterdir()) == ["config.json", "state"]


@pytest.mark.parametrize("name", ["thesis.txt", "config.json", "state/000.safetensors", ".metrics.json.part"])
def test_anything_else_is_not_touched(name, tmp_path):
    (tmp_path / "state").mkdir()
    (tmp_path / name).touch()
    with pytest.raises(OptionError, match="not empty"), new_run(tmp_path, {}):
        pytest.fail("it is not empty")
    assert not (tmp_path / "state" / "lock").exists()
