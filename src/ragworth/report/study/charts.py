"""The kinds of charts that studies draw: frames → Vega-Lite specifications in the colours of the report.

Names in frames are anybody's: control characters are shown as escapes, long names get a short form beside axes and
stand whole in tooltips and in the table of the numbers. Rows keep the order of the frame.
"""

from __future__ import annotations

from ragworth.report.study.channels import numbers
from ragworth.report.study.planes import curve, heat, points
from ragworth.report.study.rows import bars, dots, outcomes

__all__ = ["bars", "curve", "dots", "heat", "numbers", "outcomes", "points"]
