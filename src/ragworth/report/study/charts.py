"""The kinds of charts that studies draw: frames → Vega-Lite specifications in the colours of the report.

Names in frames are anybody's: control characters are shown as escapes, long names get a short form beside axes and
stand whole in tooltips and in the table of the numbers. Rows keep the order of the frame.
"""

from __future__ import annotations

from ragworth.report.charts.planes import curve_chart, heat_chart, point_chart, spec_numbers
from ragworth.report.charts.rows import bar_chart, dot_chart, outcome_chart

__all__ = ["bar_chart", "curve_chart", "dot_chart", "heat_chart", "outcome_chart", "point_chart", "spec_numbers"]
