"""From items to rows, before anything else of a run: the embedder that it uses, and the head that it trains on rows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

import torch

from wrssl import progress
from wrssl.config import FitConfig
from wrssl.data import Scenario
from wrssl.registry import METHODS

if TYPE_CHECKING:
    from wrssl.embedding import Embedder

HEAD = "linear"  # what model="auto" means on rows of an embedding; docs/guides/embeddings.md has the measurement
VIEWS = 4  # augmented versions per picture, for methods that compare views


def see(
    scenario: Scenario, config: FitConfig, say: Callable[[str], None] = progress.say
) -> tuple[Scenario, FitConfig, Embedder | None]:
    """The scenario as rows where an embedder makes some, and the options with what ``"auto"`` has become.

    A scenario that is embedded already stays as it is. The embedder is None where the rows are what the user gave.

    Args:
        scenario: the data.
        config: the options.
        say: is told once when photographs are taken as pixels because their embedder is not installed; it is a note of
            the scenario too.
    """
    embedder = None
    if scenario.unread is None and scenario.embedding is None and config.embedder in ("auto", "none", None):
        config = config.but(embedder="none")  # numbers, which are taken as they are
    elif scenario.embedding is None:
        from wrssl.embedding import choose_embedder, embed_scenario  # loads Pillow

        choice = choose_embedder(scenario, config.embedder, config.model != "auto")
        config, embedder = config.but(embedder=choice.name), choice.embedder
        if embedder is not None:
            if config.device is not None and torch.device(config.device).type != "cpu":
                choice = replace(choice, embedder=embedder.on(str(config.device)))
            scenario = embed_scenario(scenario, choice, views_for(config, embedder), config.progress)
        elif choice.missing and choice.why not in scenario.notes:
            scenario.notes.append(choice.why)
            say(f"note: {choice.why}")
    else:
        config = config.but(embedder=scenario.embedding.name if scenario.embedding.items is not None else "none")
    if scenario.embedding is not None and config.model == "auto":
        config = config.but(model=HEAD)
    return scenario, config, embedder


def views_for(config: FitConfig, embedder: Embedder) -> int:
    """How many augmented versions of each picture the method needs."""
    if embedder.kind != "image" or not METHODS.get(config.method).compares_views:
        return 0
    return VIEWS if config.views is None else config.views
