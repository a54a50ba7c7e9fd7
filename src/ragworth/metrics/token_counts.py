"""Lengths of passages in tokens, which densities divide by."""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

from ragworth.core.errors import TableError
from ragworth.data import coercion
from ragworth.data.coercion import Data
from ragworth.data.duplicates import duplicate_rows


@dataclass(frozen=True, eq=False)
class Tokens:
    """Passage lengths, and what counted them; a column ``counter`` of the lengths says so itself."""

    frame: pl.DataFrame
    counter: str = "given"

    def __post_init__(self) -> None:
        if "counter" in self.frame.columns and self.frame.height:
            object.__setattr__(self, "counter", self.frame["counter"][0])

    @classmethod
    def of(cls, data: Data, counter: str = "given", source: str = "") -> Tokens:
        """Read lengths from a table with passage and tokens."""
        frame = coercion.to_frame(data, source=source)
        passage = coercion.id_column(frame, "passage", table="token counts", source=source)
        if "tokens" not in frame.columns:
            raise TableError("no 'tokens' column", expected="passage, tokens", file=source)
        tokens = coercion.to_numbers(frame["tokens"], source=source)
        checked = pl.DataFrame([passage, tokens, *([frame["counter"]] if "counter" in frame.columns else [])])
        if tokens.null_count() or bool((tokens < 0).any()) or len(duplicate_rows(checked, ["passage"])):
            raise TableError(
                "each passage needs one token count that isn't negative",
                file=source,
                expected="passage, tokens",
            )
        return cls(checked, counter)
