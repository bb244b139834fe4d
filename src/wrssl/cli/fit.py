"""``wrssl fit``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from wrssl.cli.app import app, stoppable
from wrssl.cli.options import AsJson, DataOptions, Plugin, given_on_the_command_line, print_json, takes
from wrssl.errors import OptionError
from wrssl.worker import is_worker

ON_RESUME = ("resume", "data_dir", "devices", "strategy", "json_", "plugin")  # what may be given beside --resume


@app.command()
@takes()
def fit(
    data: DataOptions,
    options: dict[str, Any],
    context: typer.Context,
    tensorboard: Annotated[Path | None, typer.Option(help="Write curves for TensorBoard into this folder.")] = None,
    resume: Annotated[Path | None, typer.Option(help="Continue the run in this directory.")] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Print the plan and the predicted time only.")] = False,
    plugin: Plugin = None,
    json_: AsJson = False,
) -> None:
    """Train on own images or a named scenario and write a run directory."""
    if resume is not None:
        _resume(resume, data, options, given_on_the_command_line(context), json_)
        return
    from wrssl.config import FitConfig

    scenario = data.read_for("fit", FitConfig(**options))
    if dry_run:
        from wrssl.training import plan_run

        _print_plan(plan_run(scenario, FitConfig(**options)), json_)
        return
    import wrssl

    if options["out"] is None and scenario.folders is not None:
        from wrssl.runs import free_name

        options["out"] = free_name("wrssl-run")  # own folders always get a run directory
    if tensorboard is not None:
        from wrssl.training import TensorBoard

        options["callbacks"] = [TensorBoard(tensorboard)]
    with stoppable():
        result = wrssl.fit(scenario, **options)
    _print_result(result, options["out"], json_)


def _resume(run: Path, data: DataOptions, options: dict[str, Any], given: set[str], as_json: bool) -> None:
    more = sorted(given.difference(ON_RESUME))
    if more:
        names = ", ".join("--" + name.replace("_", "-") for name in more)
        raise OptionError(f"--resume continues with the settings of the run; leave out {names}, or start a new run.")
    from wrssl.training import resume_run

    devices, strategy = (options[name] if name in given else None for name in ("devices", "strategy"))
    with stoppable():
        result = resume_run(run, data.data_dir, devices, strategy)
    _print_result(result, run, as_json)


def _print_plan(plan: dict[str, Any], as_json: bool) -> None:
    if as_json:
        print_json(plan)
        return
    config = plan["config"]
    typer.echo(
        f"{config['labels']} labels, {config['num_classes']} classes, a pool of {config['pool']}, "
        f"{config['validation']} validation examples of shape {tuple(config['input_shape'])}"
    )
    for title in plan["models"]:
        typer.echo(f"{config['steps']} steps of {title}")
    for what, seconds in plan["seconds"].items():
        typer.echo(f"{what}: about {seconds:.0f} s")
    typer.echo(f"in all about {plan['total_seconds']:.0f} s; nothing was written")


def _print_result(result: Any, out: Any, as_json: bool) -> None:
    metrics = result.metrics
    if is_worker():  # under an external launcher this is known only now
        return
    if as_json:
        print_json(metrics)
        return
    rows = [
        ("test accuracy", "test_accuracy"),
        ("validation accuracy", "val_accuracy"),
        ("foreign members found (AUROC of ood_score)", "ood_auroc"),
        ("foreign members found (AUROC of the weights)", "weight_auroc"),
        ("share of the pool that looks foreign", "foreign_share"),
    ]
    for title, key in rows:
        if metrics.get(key) is not None:
            typer.echo(f"{title}: {metrics[key]:.4f}")
    if metrics.get("chosen") is not None:
        typer.echo(f"returned model: {metrics['chosen']}")
    counts = result.verdicts["verdict"].value_counts()
    typer.echo("verdicts: " + ", ".join(f"{counts.get(word, 0)} {word}" for word in ("keep", "doubt", "drop")))
    if metrics.get("skipped_steps"):
        typer.echo(f"steps that were not taken, as loss or gradient were not finite: {metrics['skipped_steps']}")
    if result.skipped:
        typer.echo(f"skipped files: {len(result.skipped)}, listed in skipped.csv")
    if out is not None:
        typer.echo(f"run directory: {out}")
