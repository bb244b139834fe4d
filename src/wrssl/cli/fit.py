"""``wrssl fit``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from wrssl.cli import options as given
from wrssl.cli.app import app, stoppable
from wrssl.worker import is_worker


@app.command()
def fit(
    scenario: given.ScenarioName = None,
    ood: given.Ood = None,
    ratio: given.Ratio = 0.5,
    mode: given.Mode = "replace",
    clean: given.Clean = False,
    data_dir: given.DataDir = None,
    download: given.Download = False,
    labels_per_class: given.LabelsPerClass = None,
    validation_size: given.ValidationSize = None,
    unlabeled_size: given.UnlabeledSize = None,
    labeled: given.Labeled = None,
    unlabeled: given.Unlabeled = None,
    validation: given.Validation = None,
    test: given.Test = None,
    image_size: given.ImageSize = 32,
    augment: given.Augment = None,
    model: given.Model = "auto",
    method: given.MethodName = "vat",
    weights: given.Weights = "wr",
    bn: Annotated[str, typer.Option(help="batch, frozen, eval or weighted")] = "weighted",
    steps: given.Steps = "auto",
    seed: given.Seed = 0,
    gate: Annotated[str | None, typer.Option(help="cosine: drop the pool in steps where it opposes the labels")] = None,
    fallback: Annotated[bool, typer.Option(help="wr: also train plain and supervised, return the best.")] = True,
    out: Annotated[Path | None, typer.Option(help="A new run directory; own images get one in any case.")] = None,
    device: given.Device = None,
    batch_size: given.BatchSize = 100,
    lr: given.Lr = None,
    budget: Annotated[str, typer.Option(help="halves, or paper: one validation set for both roles")] = "halves",
    threads: given.Threads = None,
    fast: Annotated[bool, typer.Option(help="Fused kernels; without them the same, layer by layer.")] = True,
    false_drop_rate: Annotated[float, typer.Option(help="Share of own members that may be dropped.")] = 0.05,
    devices: Annotated[int | None, typer.Option(help="Processes that share the work, one per device.")] = None,
    strategy: Annotated[str | None, typer.Option(help="auto, which is ddp")] = None,
    precision: Annotated[str, typer.Option(help="32-true or bf16-mixed")] = "32-true",
    method_option: given.Pairs = None,
    weight_option: given.Pairs = None,
    tensorboard: Annotated[Path | None, typer.Option(help="Write curves for TensorBoard into this folder.")] = None,
    resume: Annotated[Path | None, typer.Option(help="Go on with the run in this directory.")] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Print the plan and the predicted time only.")] = False,
    json_: given.AsJson = False,
) -> None:
    """Train on own images or a named scenario and write a run directory."""
    if resume is not None:
        from wrssl.training.resume import resume_run

        with stoppable():
            result = resume_run(resume, data_dir, devices, strategy)
        _say_result(result, resume, json_)
        return
    named = {
        "scenario": scenario, "ood": ood, "ratio": ratio, "mode": mode, "seed": seed, "data_dir": data_dir,
        "clean": clean, "download": download, "labels_per_class": labels_per_class, "validation_size": validation_size,
        "unlabeled_size": unlabeled_size,
    }  # fmt: skip
    folders = {
        "labeled": labeled, "unlabeled": unlabeled, "validation": validation, "test": test, "image_size": image_size,
        "augment": augment,
    }  # fmt: skip
    data = given.read_scenario(named, folders, "fit")
    options: dict[str, Any] = {
        "model": model, "method": method, "weights": weights, "bn": bn, "steps": given.number_of_steps(steps),
        "seed": seed, "gate": gate, "fallback": fallback, "device": device,
        "method_options": given.pairs("method-option", method_option),
        "weight_options": given.pairs("weight-option", weight_option), "batch_size": batch_size, "lr": lr,
        "budget": budget, "threads": threads, "fast": fast, "false_drop_rate": false_drop_rate,
    }  # fmt: skip
    if dry_run:
        from wrssl.training.planning import plan_run

        _say_plan(plan_run(data, out, head=None, **options), json_)
        return
    import wrssl

    if out is None and data.folders is not None:
        from wrssl.training.rundir import free_name

        out = free_name("wrssl-run")  # hours of somebody's folders must not end in two lines on the screen
    if tensorboard is not None:
        from wrssl.training.tensorboard import TensorBoard

        options["callbacks"] = [TensorBoard(tensorboard)]
    with stoppable():
        result = wrssl.fit(
            data, out=out, devices=devices or 1, strategy=strategy or "auto", precision=precision, **options
        )
    _say_result(result, out, json_)


def _say_plan(plan: dict[str, Any], as_json: bool) -> None:
    if as_json:
        given.print_json(plan)
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


def _say_result(result: Any, out: Path | None, as_json: bool) -> None:
    metrics = result.metrics
    if is_worker():  # under an external launcher this is known only now
        return
    if as_json:
        given.print_json(metrics)
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
