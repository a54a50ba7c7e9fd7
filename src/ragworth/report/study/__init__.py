"""What a study says, in the terminal, as a page, as Markdown and as tables.

>>> from ragworth.report import study                                                   # doctest: +SKIP
>>> study.write(findings, Path("results/studies/alignment"))                            # doctest: +SKIP
"""

from __future__ import annotations

from ragworth.report.study.findings import Findings, StudyFigure, StudyTable
from ragworth.report.study.terminal import study_text
from ragworth.report.study.writing import write_study

__all__ = ["Findings", "StudyFigure", "StudyTable", "study_text", "write_study"]
