"""How labelled items were selected, where a file says so in a column.

The sample of the better judge has to be drawn at random. Its labels of other items may correct the cheap judge if they
were drawn independently of the sample, such as items on which judges disagree.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import polars as pl

from ragworth.core.errors import InputError, format_count, format_list
from ragworth.formats.outcomes import GRADE_COLUMNS
from ragworth.formats.tables import read_table

STRATUM, RANDOM, DISPUTED, BOTH = "stratum", "random", "disputed", "random+disputed"
"""A column that labelling writes, and its values: drawn at random, for disagreement, or in both draws."""
SAMPLE_STRATA = (RANDOM, BOTH)
CORRECTION_STRATA = (DISPUTED, BOTH)
TABLES = {".csv", ".tsv", ".parquet"}


def check_random_share(path: str | Path) -> None:
    """Refuse a file with labels that were selected for another reason, such as disagreement: they bias estimates."""
    strata = _read_strata(path)
    if strata is not None:
        remedy = "use the file estimate-….csv of `ragworth label export`, which has the random share alone"
        _check(path, strata, SAMPLE_STRATA, "of a random share", remedy)


def check_corrections(path: str | Path) -> None:
    """Refuse corrections unless all of them were drawn independently of the sample: others would bias estimates."""
    if not Path(path).is_file():
        return  # the reader says that it is missing
    strata = _read_strata(path)
    remedy = "use the file corrections-….csv of `ragworth label export`"
    if strata is None:
        raise InputError(
            "nothing says how these labels were selected",
            file=str(path),
            expected=f"a table with a column {STRATUM}",
            remedy=remedy,
        )
    _check(path, strata, CORRECTION_STRATA, "drawn for disagreement", remedy)


def _read_strata(path: str | Path) -> pl.Series | None:
    if not Path(path).is_file() or not {suffix.lower() for suffix in Path(path).suffixes} & TABLES:
        return None  # the reader says what is wrong, or the format has no such column
    frame, _ = read_table(path, words=(STRATUM, *GRADE_COLUMNS), skip_bad_lines=True)
    return frame[STRATUM].fill_null("") if STRATUM in frame.columns else None


def _check(path: str | Path, strata: pl.Series, allowed: Iterable[str], what: str, remedy: str) -> None:
    others = int((~strata.is_in(list(allowed))).sum())
    if others:
        raise InputError(
            f"{format_count(others, 'row')} of {len(strata):,} {'is' if others == 1 else 'are'} not {what}",
            file=str(path),
            expected=f"only rows whose {STRATUM} is {format_list(list(allowed))}",
            remedy=remedy,
        )
