"""Whether the better judge's values are of queries drawn at random, where the file says how they were selected."""

from __future__ import annotations

from pathlib import Path

from ragworth.errors import InputError, format_count
from ragworth.formats.frames import read_table
from ragworth.formats.outcomes import GRADE_COLUMNS

STRATUM, RANDOM = "stratum", "random"
"""A column that labelling writes, and its value for what was drawn at random."""
TABLES = {".csv", ".tsv", ".parquet"}


def check_random_share(path: str | Path) -> None:
    """Refuse a file with labels that were selected for another reason, such as disagreement: they bias estimates."""
    if not Path(path).is_file() or not {suffix.lower() for suffix in Path(path).suffixes} & TABLES:
        return  # the reader says what is wrong, or the format has no such column
    frame, _ = read_table(path, words=(STRATUM, *GRADE_COLUMNS), skip_bad_lines=True)
    if STRATUM not in frame.columns:
        return
    others = int((frame[STRATUM].fill_null("") != RANDOM).sum())
    if others:
        raise InputError(
            f"{format_count(others, 'row')} of {frame.height:,} {'is' if others == 1 else 'are'} not of a random share",
            file=str(path),
            expected=f"only rows whose {STRATUM} is {RANDOM}",
            remedy="use the file estimate-….csv of `ragworth label export`, which has the random share alone",
        )
