"""Kill runs at random moments, resume them, and compare with runs that were not killed.

    .venv/bin/python benchmarks/programs/campaign_kills.py --out docs/results/trust/kills.csv

A run of ``wrssl fit`` on two moons is a process that is killed (SIGKILL) up to four times, once in each of the phases

    start-up    while the first start or a resume prepares itself
    training    after some step
    saving      while the temporary file of a state is there
    results     while the files of the result are written

in random order, the last one last, and then resumed until it is finished. Model and verdicts must be those of a run
that was not killed, byte by byte, and metrics and history too, except for times. All moments follow from ``--seed``, up
to what the machine makes of them. A row is appended per kill when its run is finished; a run whose rows are there
already is not made again.

    identical   the same result
    corrupt     another result
    lost        a resume that fails
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pandas as pd

METHODS = {
    "wr": "vat", "wr-instance": "pl", "wr-cluster": "mt", "l2rw": "pi", "mwn": "entmin", "ds3l": "vat", "uasd": "pl",
}  # fmt: skip
PHASES = ("start-up", "training", "saving", "results")
RESULTS = ("model.safetensors", "history.csv", "verdicts.csv", "skipped.csv", "state/report.json", "report.html")
COLUMNS = ("kill", "run", "seed", "weights", "method", "phase", "state_step", "left", "outcome")
STEPS = 60
ENVIRONMENT = {**os.environ, "OMP_NUM_THREADS": "1", "WRSSL_SAVE_EVERY": "0"}  # a state after every step


def command(weights: str, folder: Path) -> list[str]:
    """Start the run, or go on with it."""
    if (folder / "config.json").is_file():
        return [sys.executable, "-m", "wrssl", "fit", "--resume", str(folder)]
    options = ["--scenario", "moons", "--ood", "faraway", "--steps", str(STEPS), "--out", str(folder)]
    return [sys.executable, "-m", "wrssl", "fit", *options, "--weights", weights, "--method", METHODS[weights]]


def outcome(folder: Path) -> dict[str, object]:
    """What must be equal."""
    metrics = json.loads((folder / "metrics.json").read_text())
    metrics.pop("seconds_per_step")
    files = {name: (folder / name).read_bytes() for name in ("config.json", "model.safetensors", "verdicts.csv")}
    return {
        **files,
        "metrics": metrics,
        "history": pd.read_csv(folder / "history.csv").drop(columns="seconds").to_csv(),
    }


def newest_step(folder: Path) -> int:
    """Of all states, those of the fallback after those of the main model."""
    steps = {
        place: max((int(path.name.partition("-")[0]) for path in (folder / place).glob("*-*.safetensors")), default=0)
        for place in ("state", "state/plain", "state/supervised")
    }
    return sum(steps.values())


def moment(phase: str, folder: Path, start_up: float, draw: random.Random) -> tuple[Callable[[], bool], float]:
    """When to kill: what has to have happened, and how long to wait after that."""
    if phase == "start-up":
        return (lambda: True), draw.uniform(0, 1.1 * start_up)
    after = min(STEPS - 1, newest_step(folder) + draw.randrange(1, STEPS // 2))
    if phase == "training":
        return (lambda: newest_step(folder) >= after), draw.uniform(0, 0.02)
    if phase == "saving":
        return (lambda: newest_step(folder) >= after and any(folder.glob("state/**/.state.part"))), 0.0
    file = folder / draw.choice(RESULTS)
    return (lambda: file.exists() or file.with_name(f".{file.name}.part").exists()), draw.uniform(0, 0.01)


def kill(weights: str, phase: str, folder: Path, start_up: float, draw: random.Random) -> bool:
    """One process, killed; False if it was finished before its moment came."""
    happened, wait = moment(phase, folder, start_up, draw)
    with subprocess.Popen(
        command(weights, folder), env=ENVIRONMENT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    ) as process:
        while not happened() and process.poll() is None:
            time.sleep(0.001)
        time.sleep(wait)
        process.kill()
    return process.returncode == -9


def run(number: int, phases: tuple[str, ...], args: argparse.Namespace, folder: Path) -> list[dict[str, object]]:
    """One run with its kills; a row for each."""
    draw = random.Random(f"{args.seed}/{number}")
    weights = list(METHODS)[number % len(METHODS)]
    whole, parts = folder / f"whole-{weights}", folder / f"run-{number}"
    start = time.monotonic()
    if not (whole / "metrics.json").is_file():
        shutil.rmtree(whole, ignore_errors=True)
        with subprocess.Popen(command(weights, whole), env=ENVIRONMENT, stdout=subprocess.DEVNULL) as process:
            while not (whole / "config.json").exists() and process.poll() is None:
                time.sleep(0.01)
            (folder / "start_up").write_text(str(time.monotonic() - start))
        if process.returncode != 0:
            raise SystemExit(f"a run of {weights} that was not killed ends with {process.returncode}")
    start_up = float((folder / "start_up").read_text())
    shutil.rmtree(parts, ignore_errors=True)
    rows: list[dict[str, object]] = []
    for phase in sorted(phases, key=lambda phase: (phase == "results", draw.random())):
        if kill(weights, phase, parts, start_up, draw):
            left = " ".join(sorted(path.name for path in parts.rglob("*.part")))
            rows.append({"phase": phase, "state_step": newest_step(parts), "left": left})
    done = subprocess.run(command(weights, parts), env=ENVIRONMENT, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        word = "lost"
        print(done.stderr, file=sys.stderr)
    else:
        word = "identical" if outcome(parts) == outcome(whole) and not list(parts.rglob("*.part")) else "corrupt"
    if word == "identical":
        shutil.rmtree(parts)  # the others stay for a look
    common = {"run": number, "seed": args.seed, "weights": weights, "method": METHODS[weights], "outcome": word}
    return [{**row, **common} for row in rows]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, required=True, help="a CSV file; rows are appended")
    parser.add_argument("--kills", type=int, default=50)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--folder", type=Path, default=None, help="where the runs are made; default a temporary folder")
    args = parser.parse_args()
    rows: list[dict[str, str]] = []
    if args.out.exists():
        with args.out.open(newline="") as file:
            rows = [row for row in csv.DictReader(file) if row["seed"] == str(args.seed)]
    folder = args.folder or Path(tempfile.mkdtemp(prefix="wrssl-kills-"))
    folder.mkdir(parents=True, exist_ok=True)
    number = 1 + max((int(row["run"]) for row in rows), default=-1)
    while len(rows) < args.kills:
        made = run(number, PHASES[: args.kills - len(rows)], args, folder)
        fresh = not args.out.exists()
        args.out.parent.mkdir(parents=True, exist_ok=True)
        with args.out.open("a", newline="") as file:
            writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
            if fresh:
                writer.writeheader()
            for row in made:
                row["kill"] = len(rows)
                rows.append({name: str(row[name]) for name in COLUMNS})
                writer.writerow(row)
        words = ", ".join(f"{row['weights']} {row['phase']} {row['outcome']}" for row in made)
        print(f"run {number}: {words}", flush=True)
        number += 1
    counts = Counter(row["outcome"] for row in rows)
    print(", ".join(f"{counts[word]} {word}" for word in ("identical", "lost", "corrupt")))
    if args.folder is None and counts["identical"] == len(rows):
        shutil.rmtree(folder)
    sys.exit(counts["identical"] != len(rows))


if __name__ == "__main__":
    main()
