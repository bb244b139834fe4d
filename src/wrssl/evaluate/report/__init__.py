"""``report.html``: one self-contained page about a run.

``collect`` gathers what the page needs into a dictionary that JSON can hold, ``render`` makes the page of that
dictionary alone, so that it can be written again without the data. Within ``collect``: ``members.py`` (the pool in
numbers, packed by ``packing.py``), ``selection.py`` (who is shown), ``thumbnails.py``, ``clusters.py``, ``judged.py``
(confusion and calibration), ``batch_statistics.py``. Within ``render``: ``page.py`` with ``answer.py`` (sentences),
``charts/`` (SVG), ``repeat.py`` (the command), and the template, style and scripts in ``assets/``.
"""

from __future__ import annotations

from wrssl.evaluate.report.collect import collect
from wrssl.evaluate.report.render import render, write

__all__ = ["collect", "render", "write"]
