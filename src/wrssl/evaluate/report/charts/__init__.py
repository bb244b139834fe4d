"""Charts as inline SVG: crisp at any size, in the colours of the page (classes of ``assets/style.css``), no library."""

from __future__ import annotations

from wrssl.evaluate.report.charts.heat import heat
from wrssl.evaluate.report.charts.histogram import histogram
from wrssl.evaluate.report.charts.lines import Line, lines
from wrssl.evaluate.report.charts.reliability import reliability_diagram

__all__ = ["Line", "heat", "histogram", "lines", "reliability_diagram"]
