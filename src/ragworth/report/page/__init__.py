"""The report of one evaluation: a self-contained page, and the same as Markdown with figures beside it.

>>> from ragworth.report import page                                                    # doctest: +SKIP
>>> page.write(Results.read("results"), "report.html")                                  # doctest: +SKIP
"""

from __future__ import annotations

from ragworth.report.page.building import Page, build, write
from ragworth.report.page.sections.studies import update_study_list

__all__ = ["Page", "build", "update_study_list", "write"]
