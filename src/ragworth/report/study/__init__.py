"""What a study says, in the terminal, as a page, as Markdown and as tables.

>>> from ragworth.report import study                                                   # doctest: +SKIP
>>> study.write(findings, Path("results/studies/alignment"))                            # doctest: +SKIP
"""

from __future__ import annotations

from ragworth.report.renderers.terminal import render_text
from ragworth.report.study.findings import Findings, StudyFigure, StudyTable
from ragworth.report.study.writing import study_document, write_study

__all__ = ["Findings", "StudyFigure", "StudyTable", "study_document", "study_text", "write_study"]


def study_text(findings: Findings) -> str:
    """What a study says, in a terminal."""
    return render_text(study_document(findings))
