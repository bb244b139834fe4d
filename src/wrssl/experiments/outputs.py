"""table.md, figure.png and pictures, made of what is in the folder of an experiment and of nothing else."""

from __future__ import annotations

import re
from pathlib import Path

from wrssl.experiments.experiment import Experiment
from wrssl.experiments.plan import ENDINGS, KEPT
from wrssl.experiments.results import RESULTS, read_rows
from wrssl.experiments.tables import table_text
from wrssl.training.files import write_atomically

TABLE, FIGURE, PAGE = "table.md", "figure.png", "README.md"
BEGIN, END = "<!-- table.md begins -->", "<!-- table.md ends -->"


def write_outputs(experiment: Experiment, folder: Path) -> None:
    """Draw everything anew; a README.md with the two marks gets the new table between them."""
    from wrssl.experiments.drawing.figure import draw_figure

    rows = read_rows(folder / RESULTS)
    text = table_text(experiment, rows)
    write_atomically(folder / TABLE, lambda path: path.write_text(text, encoding="utf-8"))
    page = folder / PAGE
    if page.is_file() and BEGIN in (old := page.read_text(encoding="utf-8")):
        new = with_table(old, text)
        write_atomically(page, lambda path: path.write_text(new, encoding="utf-8"))
    if rows:
        traces = {path.name.partition(".")[0]: path for path in (folder / KEPT).glob(f"*.{ENDINGS['weights']}")}
        draw_figure(experiment, rows, traces, folder / FIGURE)
        if experiment.name == "fig2":
            from wrssl.experiments.drawing.moons import draw_moons

            draw_moons(rows, folder)


def with_table(page: str, table: str) -> str:
    """The page with this table between its marks; the table's own title is left out, a page has one of its own."""
    body = table.split("\n", 1)[1].strip()
    return re.sub(f"{BEGIN}.*?{END}", lambda _: f"{BEGIN}\n\n{body}\n\n{END}", page, flags=re.DOTALL)
