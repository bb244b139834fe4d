"""Views that were embedded before the training: a changed example is another row of the same picture."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from wrssl.data.inputs import prepare


class StoredViews:
    """An ``Augmentation`` of the rows of one batch.

    Args:
        tables: rows of the views 1 … V, one table (N, d) each; view 0 is the example itself.
        index: which rows of the tables the batch holds.
    """

    def __init__(self, tables: Sequence[Tensor], index: Tensor | slice) -> None:
        self.tables, self.index = tables, index

    def weak(self, x: Tensor, generator: torch.Generator) -> Tensor:
        """Each row is one of its views 0 … V, all equally likely."""
        return self._drawn(x, 0, generator)

    def strong(self, x: Tensor, generator: torch.Generator) -> Tensor:
        """Each row is one of its views 1 … V, which are crops with other colors."""
        return self._drawn(x, 1, generator)

    def _drawn(self, x: Tensor, first: int, generator: torch.Generator) -> Tensor:
        size = (len(x),)
        chosen = torch.randint(first, len(self.tables) + 1, size, generator=generator, device=generator.device).cpu()
        out = x.clone()
        places = torch.arange(self.index.start, self.index.stop) if isinstance(self.index, slice) else self.index
        for number, table in enumerate(self.tables, 1):
            here = (chosen == number).nonzero().flatten()
            if len(here):
                out[here.to(x.device)] = prepare(table[places[here]]).to(x)
        return out
