"""What a study says, in the terminal, as a page, as Markdown and as tables.

>>> from ragworth.report import study                                                   # doctest: +SKIP
>>> study.write(findings, Path("results/studies/alignment"))                            # doctest: +SKIP
"""

from __future__ import annotations

from ragworth.report.study.findings import Figure, Findings, Shown
from ragworth.report.study.terminal import words
from ragworth.report.study.writing import write

__all__ = ["Figure", "Findings", "Shown", "words", "write"]
