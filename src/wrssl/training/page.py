"""What the report of a run is made of, gathered when somebody wants one."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from torch import Tensor

from wrssl.data import Scenario
from wrssl.progress import note
from wrssl.training.files import write_atomically

if TYPE_CHECKING:
    from wrssl.training.result import Result


def write_page(page: dict[str, Any], path: Path) -> None:
    """``report.html`` of what was collected: all of it or, where that fails, none of it."""
    from wrssl.evaluate.report import render

    write_html(render(page), path)


def write_html(html: str, path: Path) -> None:
    """The page as it is."""
    write_atomically(path, lambda p: p.write_text(html, encoding="utf-8"))


@dataclass(frozen=True)
class PageSource:
    """What a result does not hold itself.

    Attributes:
        scenario: the data.
        weight_rows: how the weights were spread at each evaluation.
        test_logits: the model's output for the test set, where there is one.
    """

    scenario: Scenario
    weight_rows: list[dict[str, Any]]
    test_logits: Tensor | None

    def collect(self, result: Result) -> dict[str, Any]:
        """What ``wrssl.evaluate.report.render`` shows."""
        from wrssl.evaluate.report import collect

        with note("collecting the report"):
            return collect(
                self.scenario, result.model, result.verdicts, result.history, result.metrics, result.config,
                result.classes.tolist(), self.weight_rows, test_logits=self.test_logits,
            )  # fmt: skip
