"""Find out the format of a file from its beginning."""

from __future__ import annotations

from ragworth.formats.contract import Format
from ragworth.formats.files import PathOrStr


def detect(path: PathOrStr) -> Format:
    """Return the format of a file. An unknown one is an error that says how to map its columns."""
    raise NotImplementedError
