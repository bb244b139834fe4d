"""A Dask cluster of two workers, one of which is killed while it works; prints what was run and what was stored."""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from pathlib import Path

from distributed import LocalCluster

from wrssl_reproduction import figure, plan
from wrssl_reproduction import reproduce as module
from wrssl_reproduction.run import Outcome
from wrssl_reproduction.workers import cluster


def slow(cell, data_dir):
    """Stands in for training; leaves a mark that it was begun."""
    begun = Path(data_dir) / f"{cell.config_hash}-{os.getpid()}"
    begun.touch()
    time.sleep(0.2)
    measured = {"test_accuracy": 0.5, "val_accuracy": 0.5, "seconds_per_step": 0.01, "mean_seconds_per_step": 0.01}
    return Outcome({**measured, "n_labels": 100, "n_validation": 100, "seconds": 0.2})


def main(out):
    marks = Path(out) / "begun"
    marks.mkdir()
    plan.missing_data = lambda cell, data_dir: None
    figure.draw_figure = lambda experiment, rows, traces, path: None
    with LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as workers:
        victim = next(iter(workers.workers.values())).process.process.pid
        stored = module.store

        def store_and_kill(*arguments):
            stored(*arguments)
            if len(list(marks.iterdir())) >= 4 and not (Path(out) / "killed").exists():
                os.kill(victim, signal.SIGKILL)
                (Path(out) / "killed").touch()

        module.store = store_and_kill
        with cluster("dask", workers.scheduler_address) as backend:
            summary = module.reproduce(
                "fig4a", out=Path(out) / "fig4a", jobs=-1, backend=backend, run=slow, data_dir=str(marks)
            )
    pids = {name.name.split("-")[1] for name in marks.iterdir()}
    print(json.dumps({"runs": summary.runs, "new": summary.new, "failed": len(summary.failed), "pids": len(pids)}))


if __name__ == "__main__":
    main(sys.argv[1])
