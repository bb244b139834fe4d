"""What is refused before anything is started, and what is started."""

from __future__ import annotations

import pytest
import torch

import wrssl
from wrssl.errors import OptionError
from wrssl.parallel import Devices, check_devices, launch, own_device


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((0, "auto", "32-true"), "from 1 on"),
        ((True, "auto", "32-true"), "whole number"),
        ((2, "magic", "32-true"), r"choose one of auto, ddp\.$"),
        ((2, "ddp", "8-bit"), "choose 32-true or bf16-mixed"),
        ((2, "fsdp", "32-true"), r'"fsdp" is not supported, .* holds the whole model .*; use "ddp", which .*\.$'),
        ((1, "fsdp", "32-true"), '"fsdp" is not supported'),
    ],
)
def test_refused_in_one_sentence(arguments, words):
    with pytest.raises(OptionError, match=words):
        check_devices(*arguments)


@pytest.mark.parametrize("accelerator", ["cpu", "cuda"])
def test_launch_refuses_the_same(accelerator):
    with pytest.raises(OptionError, match='"fsdp" is not supported'):
        launch(2, "fsdp", "32-true", accelerator)


def test_one_process_in_full_precision_starts_nothing():
    assert launch(1, "auto", "32-true", "cpu") == Devices()
    assert Devices().lead


def test_the_refusal_reaches_fit_before_a_folder_is_made(tmp_path):
    scenario = wrssl.load_scenario("moons", ood="faraway", ratio=0.25, seed=0)
    with pytest.raises(OptionError, match='"fsdp" is not supported'):
        wrssl.fit(scenario, steps=5, devices=2, strategy="fsdp", out=tmp_path / "run")
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("name", "devices", "expected"), [("cuda", 2, "cuda:3"), ("cuda", 1, "cuda"), ("cpu", 2, "cpu")]
)
def test_each_process_has_its_gpu(name, devices, expected, monkeypatch):
    monkeypatch.setenv("LOCAL_RANK", "3")
    assert own_device(name, devices) == expected


def test_bfloat16_passes_and_the_rest_in_full_precision(monkeypatch):
    pytest.importorskip("lightning_fabric")
    scenario = wrssl.load_scenario("digits", ood="patches", ratio=0.5, seed=0)
    options = {"method": "pl", "weights": "wr-cluster", "steps": 30, "progress": False, "batch_size": 50}
    mixed = wrssl.fit(scenario, precision="bf16-mixed", **options)
    full = wrssl.fit(scenario, **options)
    assert {p.dtype for p in mixed.model.parameters()} == {torch.float32}
    assert mixed.history["loss"].iloc[0] != full.history["loss"].iloc[0], "something else was computed"
    assert mixed.history["loss"].iloc[0] == pytest.approx(full.history["loss"].iloc[0], rel=0.05)
    assert abs(mixed.metrics["val_accuracy"] - full.metrics["val_accuracy"]) < 0.1
