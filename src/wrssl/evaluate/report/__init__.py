"""``report.html``: one self-contained page about a run.

``collect`` gathers what the page needs into a dictionary that JSON can hold (``pool.py``: the pool; ``thumbnails.py``;
``batch_statistics.py``; ``resemblance.py``: items, map and nearest labels of a run in an embedding), ``render`` makes
the page of that dictionary alone, so that it can be written again without the data (``sentences.py``: the answer;
``charts.py``, ``map_chart.py``: SVG; ``repeat.py``: the command that makes the run again). The template, style and
scripts are in ``assets/``, values and texts for both in ``text.py``.
"""

from __future__ import annotations

from wrssl.evaluate.report.collect import collect
from wrssl.evaluate.report.render import render

__all__ = ["collect", "render"]
