"""``wrssl audit``."""

from __future__ import annotations

from typing import Annotated

import typer

from wrssl.cli import options as given
from wrssl.cli.app import app, stoppable


@app.command()
def audit(
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
    image_size: given.ImageSize = 32,
    augment: given.Augment = None,
    model: given.Model = "auto",
    method: given.MethodName = "vat",
    weights: given.Weights = "wr",
    steps: given.Steps = "auto",
    seed: given.Seed = 0,
    repeats: Annotated[int, typer.Option(help="Random splits of the labels; more give a narrower interval.")] = 5,
    device: given.Device = None,
    batch_size: given.BatchSize = 100,
    lr: given.Lr = None,
    threads: given.Threads = None,
    json_: given.AsJson = False,
) -> None:
    """Will this pool help or hurt? Trains without it, with it, and robustly with it, on several splits."""
    import wrssl

    named = {
        "scenario": scenario, "ood": ood, "ratio": ratio, "mode": mode, "seed": seed, "data_dir": data_dir,
        "clean": clean, "download": download, "labels_per_class": labels_per_class, "validation_size": validation_size,
        "unlabeled_size": unlabeled_size,
    }  # fmt: skip
    # Labels that are held out by the audit itself need not be held out before.
    held = 0.0 if validation is None else validation
    folders = {
        "labeled": labeled, "unlabeled": unlabeled, "validation": str(held), "image_size": image_size,
        "augment": augment,
    }  # fmt: skip
    data = given.read_scenario(named, folders, "audit")
    with stoppable():
        found = wrssl.audit(
            data, model=model, method=method, weights=weights, steps=given.number_of_steps(steps), seed=seed,
            repeats=repeats, device=device, batch_size=batch_size, lr=lr, threads=threads,
        )  # fmt: skip
    if json_:
        given.print_json(found.to_json())
        return
    for note in found.notes:
        typer.echo(f"note: {note}", err=True)
    typer.echo(found.sentence)
