"""Scenarios in an embedding: which embedder a scenario of photographs or texts gets, and its rows.

**The choice.** ``embedder="auto"`` is decided once, by the labeled items. Texts get ``minilm``. Files of images get
``lite0`` where their shorter side has a median of at least 64 pixels and most of them are in color: smaller or gray
pictures (digits, scans, X-rays) are rarely like the photographs that its network knows. Arrays and named scenarios are
never embedded by ``"auto"``, and neither is anything where ``model=`` names a network of its own.
"""

from __future__ import annotations

import io
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from wrssl.data import TEST, TEXT, Embedded, Embedding, Scenario
from wrssl.data.images import Unreadable, formats, open_picture, quiet
from wrssl.embedding.cache import cache_root
from wrssl.embedding.embedder import Embedder, find_embedder
from wrssl.embedding.items import MAX_PIXELS
from wrssl.embedding.pipeline import embed_items
from wrssl.errors import OptionError

AUTO, NONE, OWN_EMBEDDER = "auto", "none", "own embedder"
PHOTOGRAPHS, TEXTS = "lite0", "minilm"
SIDE = 64  # pixels of the median shorter side from which files count as photographs
SAMPLE = 100  # labeled files that are looked at
LOOK = 64  # pixels to which they are reduced for that
COLOR = 4  # of 255; gray pictures in lossy formats differ by less between red, green and blue


@dataclass(frozen=True)
class Choice:
    """Which embedder makes the rows, and why.

    Attributes:
        name: as it can be asked for again, ``"none"`` for none; ``"own embedder"`` for a module or a function.
        embedder: None for none.
        why: one sentence.
        missing: the items want an embedder that is not installed.
    """

    name: str
    embedder: Embedder | None
    why: str
    missing: bool = False


def choose_embedder(scenario: Scenario, wish: Any, own_model: bool) -> Choice:
    """The embedder of a run.

    Args:
        scenario: the data; its items are looked at where the choice is free.
        wish: ``"auto"``, ``"none"`` or None, or whatever ``find_embedder`` takes.
        own_model: whether the user named a network.
    """
    if wish is None or wish == NONE:
        return Choice(NONE, None, "No embedder was asked for.")
    unread = scenario.unread
    if not isinstance(wish, str):
        return Choice(OWN_EMBEDDER, find_embedder(wish), "Given by the user.")
    if wish != AUTO:
        return Choice(wish, find_embedder(wish), "Asked for by name.")
    if unread is None:
        return Choice(NONE, None, "Arrays and named scenarios are taken as they are.")
    if own_model and unread.kind != TEXT:
        return Choice(NONE, None, "A network for images was named.")
    if unread.kind == TEXT:
        return Choice(TEXTS, find_embedder(TEXTS), "The items are texts.")
    side, colored, looked = look(unread.labeled_items())
    if side < SIDE or 2 * colored <= looked:
        what = f"a median shorter side of {side} pixels" if side < SIDE else "mostly shades of gray"
        return Choice(NONE, None, f"The labeled images have {what}, and are taken as pixels.")
    why = (
        f"The labeled images are photographs: the median shorter side is {side} pixels, {colored} of {looked} in color."
    )
    try:
        return Choice(PHOTOGRAPHS, find_embedder(PHOTOGRAPHS), why)
    except OptionError as error:  # its extra is not installed
        return Choice(NONE, None, f"{why} {str(error).rstrip('.')}. {COSTS}", missing=True)


COSTS = (
    "Without it a small network is trained from scratch on 32 × 32 pixels, which with few labels recognizes far less "
    "than a pretrained one: on four classes of photographs with ten labels each 41 % instead of 93 %."
)


def look(paths: Sequence[Any]) -> tuple[int, int, int]:
    """The median shorter side of these images in pixels, how many are in color, and how many were looked at."""
    formats()
    with quiet():
        some = [_side_and_color(Path(path)) for path in list(paths)[:: max(1, len(paths) // SAMPLE)]]
    seen = [found for found in some if found is not None]
    side = int(statistics.median(side for side, _ in seen)) if seen else 0
    return side, sum(colored for _, colored in seen), len(seen)


def _side_and_color(path: Path) -> tuple[int, bool] | None:
    """The shorter side of an image and whether it is in color; None for a file that cannot be read."""
    from PIL import Image

    try:
        data = path.read_bytes()
        with Image.open(io.BytesIO(data), formats=formats()) as image:
            side = min(image.size)
    except Exception:  # damaged files fail in many ways, and are reported when they are embedded
        return None
    picture = open_picture(io.BytesIO(data), LOOK, MAX_PIXELS)
    if isinstance(picture, Unreadable):
        return None
    return side, int((picture.max(2).astype(int) - picture.min(2)).max()) > COLOR


def embed_scenario(scenario: Scenario, choice: Choice, views: int = 0, show: bool | None = None) -> Scenario:
    """The scenario with one row per item, of an embedding.

    Args:
        scenario: of items, or of images ``(N, C, H, W)`` as uint8.
        choice: with an embedder.
        views: augmented versions of each picture of the labeled part, the validation part and the pool.
        show: a progress line; default on a terminal after two seconds.
    """
    embedder = choice.embedder
    assert embedder is not None
    unread = scenario.as_items()
    if unread.kind != embedder.kind:
        raise OptionError(
            f"The embedder {choice.name} takes {embedder.kind}s, and this data holds {unread.kind}s; choose another "
            "embedder."
        )
    cache = cache_root(unread.cache_dir)

    def embed(items: Sequence[Any], part: str) -> Embedded:
        return embed_items(
            items, embedder, views=0 if part == TEST else views, cache=cache, jobs=unread.jobs, show=show
        )

    content = unread.embedded(embed)
    facts = Embedding(
        choice.name, embedder.fingerprint, choice.why, content.items,
        [torch.from_numpy(np.asarray(view)) for view in content.pool_views],
        [torch.from_numpy(np.asarray(view)) for view in content.known_views],
    )  # fmt: skip
    return Scenario.of_content(unread, content, facts)
