"""From items to rows, before anything else of a run: the embedder that it uses, and the head that it trains on rows."""

from __future__ import annotations

from typing import TYPE_CHECKING

from wrssl import progress
from wrssl.config import FitConfig
from wrssl.data import Scenario
from wrssl.registry import METHODS

if TYPE_CHECKING:
    from wrssl.embedding import Embedder

HEAD = "linear"  # what model="auto" means on rows of an embedding; docs/guides/embeddings.md has the measurement
VIEWS = 4  # augmented versions per picture, for methods that compare views


def see(scenario: Scenario, config: FitConfig) -> tuple[Scenario, FitConfig, Embedder | None]:
    """The scenario as rows where an embedder makes some, and the options with what ``"auto"`` has become.

    A scenario that is embedded already stays as it is. The embedder is None where the rows are what the user gave.
    """
    from wrssl.embedding import choose_embedder, embed_scenario  # loads Pillow

    embedder = None
    if scenario.embedding is None:
        choice = choose_embedder(scenario, config.embedder, config.model != "auto")
        config, embedder = config.but(embedder=choice.name), choice.embedder
        if embedder is not None:
            scenario = embed_scenario(scenario, choice, views_for(config, embedder), config.progress)
        elif scenario.unread is not None and "pip install" in choice.why:
            scenario.notes.append(choice.why)
            progress.say(f"note: {choice.why}")
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
