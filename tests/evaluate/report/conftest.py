"""A run without training: small, quick, and with everything in it that a report has to survive; and a browser."""

from __future__ import annotations

import base64
import json
import shutil
import time
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from torch import nn

import wrssl
from wrssl.data import Embedding, Items
from wrssl.evaluate import collect, render

CLASSES = ["cat", "dog", "<b>bird</b>"]
EVIL = [
    "<script>alert(1)</script>.png",
    "</script><script>document.title='broken'</script>",
    "<img src=x onerror=\"document.title='broken'\">",
    'A "Quoted", comma\'d & <odd> name.png',
    "\U0001d518nicode/\U0001d518\u00e4\u2028\u2029.png",
    "\U0001d518nicode/\U0001d519.png",
    "bytes\udcff.png",
    "{{ 7 * 7 }}{% raw %}",
]
# Products with 100 or 10,000 that binary fractions miss, and values just beside a threshold.
TRICKY = [0.0, 0.29, 0.57, 0.58, np.nextafter(0.5, 0), 0.5, np.nextafter(0.29, 0), 0.07, 1.0, np.float32(0.35)]


@dataclass
class Run:
    """The arguments of ``collect``, by name."""

    scenario: Any
    model: nn.Module
    verdicts: pd.DataFrame
    history: pd.DataFrame
    metrics: dict[str, Any]
    config: dict[str, Any]
    classes: Any
    weight_history: list[dict[str, Any]]

    def but(self, **changes: Any) -> Run:
        return replace(self, **changes)

    def collect(self) -> dict[str, Any]:
        return collect(**vars(self))

    def render(self) -> str:
        return render(self.collect())


def network(shape: tuple[int, ...], classes: int) -> nn.Module:
    generator = torch.Generator().manual_seed(1)
    with torch.random.fork_rng():  # layers initialise themselves from the global generator
        if len(shape) == 1:
            layers = [nn.Linear(shape[0], 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Linear(8, classes)]
        else:
            pooled = [nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten()]
            layers = [nn.Conv2d(shape[0], 8, 3), nn.BatchNorm2d(8), *pooled, nn.Linear(8, classes)]
    model = nn.Sequential(*layers)
    with torch.no_grad():
        for tensor in model.state_dict().values():
            if tensor.is_floating_point():
                tensor.copy_(torch.rand(tensor.shape, generator=generator) + 0.1)
        list(model.parameters())[-2].mul_(20)  # so that predictions differ
    return model.eval()


def make_run(
    size: int = 150,
    shape: tuple[int, ...] = (1, 8, 8),
    test: bool = True,
    validation: bool = True,
    truth: bool = True,
    clusters: int | None = 5,
    ids: list[str] | None = None,
    classes: list[str] = CLASSES,
) -> Run:
    random = np.random.default_rng(0)

    def part(rows: int) -> Any:
        return random.integers(0, 256, (rows, *shape), dtype=np.uint8), np.resize(np.array(classes), rows)

    labeled, held_out, tested = part(2 * len(classes)), part(max(40, len(classes))), part(max(90, len(classes)))
    pool = random.integers(0, 256, (size, *shape), dtype=np.uint8)
    if ids is None:
        ids = [*EVIL, *(f"folder {k // 20}/image-{k:05d}.png" for k in range(size - len(EVIL)))]
    scenario = wrssl.Scenario(
        labeled,
        pool,
        held_out if validation else None,
        tested if test else None,
        random.random(size) < 0.4 if truth else None,
        name="cats & <dogs>",
        overlap="allow",
        ids=ids,
    )
    scenario.notes = ["A note with <markup>."]
    scenario.skipped = [("<i>broken</i>.jpg", "It is no <image>."), ("empty.png", "The file is empty.")]
    weight = random.random(size).round(3)
    weight[: len(TRICKY)] = TRICKY
    score = random.random(size)
    verdict = np.where(score > 0.9, "drop", np.where((score > 0.7) | (weight < 0.5), "doubt", "keep")).astype(object)
    unknown = pd.array([pd.NA] * size, dtype="Int8")
    verdicts = pd.DataFrame(
        {
            "id": pd.Series(ids, dtype=object),  # not all of them are text that Arrow could hold
            "weight": weight,
            "ood_score": score,
            "is_ood": scenario._is_ood.numpy().astype("int8") if truth else unknown,
            "verdict": verdict,
            "cluster": unknown if clusters is None else (np.arange(size) % clusters).astype("int32"),
            "pseudo_label": scenario.classes[random.integers(0, len(classes), size)].astype(object),
            "confidence": random.random(size),
        }
    )
    history = pd.DataFrame(
        {
            "step": [10, 20, 30],
            "labeled": [1.5, 0.75, 0.25],
            "unlabeled": [0.125, 0.25, 0.5],
            "mean_weight": [0.5, 0.5, 0.5],
            "val_accuracy": [0.5, 0.8125, 0.75] if validation else [None] * 3,
            "val_loss": [1.25, 0.625, 0.6875] if validation else [None] * 3,
            "seconds": [1.0, 2.0, 3.25],
        }
    )
    metrics = {
        "test_accuracy": 0.8125 if test else None,
        "val_accuracy": 0.8125 if validation else None,
        "best_step": 20,
        "optimizer_steps": 30,
        "fallback_steps": 0,
        "chosen": None,
        "seconds_per_step": 0.0125,
        "ood_auroc": 0.9375 if truth else None,
        "not_a_number": float("nan"),
    }
    config = {
        "wrssl": "0.1.0",
        "torch": "2.13.0",
        "threads": 1,
        "scenario": {"name": "own <data>"},
        "classes": list(classes),
        "model": "auto",
        "method": "vat",
        "method_options": {},
        "weights": "wr",
        "weight_options": {},
        "seed": 7,
        "steps": 30,
        "device": "cpu",
        "false_drop_rate": 0.05,
    }
    snapshots = [
        {"step": step, "mean": 0.5, "members": size, "counts": [size - 2, *[0] * 18, 2]} for step in (0, 10, 20, 30)
    ]
    model = network(shape, len(classes))
    return Run(scenario, model, verdicts, history, metrics, config, scenario.classes, snapshots)


def make_embedded(
    size: int = 150, kind: str | None = "image", labels: int = 6, dim: int = 12, items: Items | None = None, **more: Any
) -> Run:
    """The same of a run in an embedding: rows of half precision around a middle per class, and what they were made of.

    Args:
        size: of the pool.
        kind: of the items; None for rows that the user brought.
        labels: of each class.
        dim: columns.
        items: in place of tiny pictures of one color or short texts.
        more: for ``make_run``.
    """
    run = make_run(size, (dim,), validation=False, **more)
    random = np.random.default_rng(5)
    names = np.asarray(run.classes)
    middles = 3 * random.standard_normal((len(names), dim))
    y = np.arange(labels * len(names)) % len(names)
    rows, pool = (
        (middles[which] + random.standard_normal((len(which), dim))).astype(np.float16)
        for which in (y, random.integers(0, len(names), size))
    )
    if items is None and kind == "image":
        colors = random.integers(0, 256, (len(y) + size, 1, 1, 3), dtype=np.uint8)
        pictures = list(np.broadcast_to(colors, (len(colors), 12, 12, 3)))
        items = Items("image", pictures[: len(y)], pictures[len(y) :])
    elif items is None and kind == "text":
        items = Items("text", [f"label {k}" for k in range(len(y))], [f"text {k}" for k in range(size)])
    scenario = wrssl.Scenario(
        (rows, names[y]),
        pool,
        ids=run.scenario.ids,
        name="cats & <dogs>",
        overlap="allow",
        embedding=Embedding("some-embedder", "print", "It was chosen <b>because</b>.", items),
    )
    return run.but(scenario=scenario, metrics={**run.metrics, "test_accuracy": None})


@pytest.fixture(scope="session")
def run() -> Run:
    return make_run()


@pytest.fixture(scope="session")
def data(run: Run) -> dict[str, Any]:
    """What ``collect`` gives; tests that change it copy it first."""
    return run.collect()


@pytest.fixture(scope="session")
def make():
    """``make_run``; with this import mode a test cannot import its neighbours."""
    return make_run


@pytest.fixture(scope="session")
def make_in_embedding():
    """``make_embedded``."""
    return make_embedded


class Browser:
    """One Chromium for all tests of a file."""

    def __init__(self, driver, folder):
        self.driver, self.folder = driver, folder

    def media(self, **features):
        asked = [{"name": name.replace("_", "-"), "value": value} for name, value in features.items()]
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": asked})

    def width(self, pixels):
        size = {"width": pixels, "height": 900, "deviceScaleFactor": 1, "mobile": pixels < 500}
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)

    def open(self, html, name="report.html"):
        self.driver.get("about:blank")
        self.logs()
        (self.folder / name).write_text(html, encoding="utf-8")
        self.driver.get((self.folder / name).as_uri())

    def logs(self):
        """What the console said, and every address that was asked for."""
        said = [entry["message"] for entry in self.driver.get_log("browser")]
        events = [json.loads(entry["message"])["message"] for entry in self.driver.get_log("performance")]
        asked = [e["params"]["request"]["url"] for e in events if e["method"] == "Network.requestWillBeSent"]
        return said, asked

    def js(self, code, *arguments):
        return self.driver.execute_script(code, *arguments)

    def text(self, name):
        return self.js("return document.getElementById(arguments[0]).innerText", name)

    def put(self, name, value):
        """As a reader would change it: the value, and the event that follows."""
        self.js(
            "const e = document.getElementById(arguments[0]); e.value = arguments[1];"
            "e.dispatchEvent(new Event('input', {bubbles: true}));",
            name,
            str(value),
        )

    def ids(self):
        """The members that are shown, in order."""
        return self.js("return [...document.querySelectorAll('#members .id')].map((e) => e.textContent)")

    def photograph(self, selector):
        """PNG of one element."""
        place = self.js(
            "const r = document.querySelector(arguments[0]).getBoundingClientRect();"
            "return {x: r.x + scrollX, y: r.y + scrollY, width: r.width, height: r.height, scale: 1}",
            selector,
        )
        asked = {"format": "png", "captureBeyondViewport": True, "clip": place}
        return base64.b64decode(self.driver.execute_cdp_cmd("Page.captureScreenshot", asked)["data"])

    def download(self, button, name):
        """Press a button and read the file that the browser saves."""
        target = self.folder / name
        target.unlink(missing_ok=True)
        self.js("document.getElementById(arguments[0]).click()", button)
        for _ in range(100):  # Chromium reserves the name with an empty file, and fills another one that it renames
            if target.is_file() and target.stat().st_size and not list(self.folder.glob("*.crdownload")):
                break
            time.sleep(0.05)
        assert target.is_file(), f"no file {name} was saved"
        return target.read_bytes().decode("utf-8")


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    webdriver = pytest.importorskip("selenium.webdriver", reason="selenium is not installed: pip install selenium")
    service = pytest.importorskip("selenium.webdriver.chrome.service")
    chromium, driver = shutil.which("chromium") or shutil.which("chromium-browser"), shutil.which("chromedriver")
    if chromium is None or driver is None:
        pytest.skip("Chromium or its driver is not installed: apt-get install chromium chromium-driver")
    folder = tmp_path_factory.mktemp("pages")
    options = webdriver.ChromeOptions()
    options.binary_location = chromium
    for argument in ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars"):
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    started = webdriver.Chrome(options=options, service=service.Service(driver))
    try:
        allowed = {"behavior": "allow", "downloadPath": str(folder)}
        started.execute_cdp_cmd("Browser.setDownloadBehavior", allowed)
        yield Browser(started, folder)
    finally:
        started.quit()
