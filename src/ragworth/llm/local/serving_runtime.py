"""Run models with the engines of inference servers, which batch rows of all lengths as they come.

An engine says how likely tokens are and continues prompts; `ServingRuntime` builds on that what local models need. No
engine reports entropies, which take the whole vocabulary.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np

from ragworth.errors import ModelError
from ragworth.llm.contract import Generate
from ragworth.llm.local.runtime import Continuation, RowLogprobs, TokenRow

MAX_DISTANCE = 0.5
"""Up to which an engine's log-probabilities may differ from the transformers library's, on average."""


class ServingEngine(Protocol):
    """What an engine is asked for. Rows are token ids."""

    def score_next(self, prompts: Sequence[list[int]], wanted: Sequence[list[int]]) -> list[list[float]]:
        """Log-probabilities of the wanted tokens right after each prompt."""
        ...

    def score_rows(self, rows: Sequence[list[int]], firsts: Sequence[int]) -> list[list[float]]:
        """Log-probabilities of each row's own tokens, from the position ``first`` on."""
        ...

    def generate(self, asked: Sequence[tuple[Generate, list[int], int]]) -> list[Continuation]:
        """Continue each prompt once, as its request says, with a seed."""
        ...

    def close(self) -> None: ...


class ServingRuntime:
    """An engine as `GeneratingRuntime`. It keeps common beginnings of prompts by itself."""

    def __init__(self, name: str, engine: ServingEngine, tokens: int) -> None:
        self.name = name
        self.tokens = tokens
        self._engine = engine
        self.generate = engine.generate
        self.close = engine.close

    def prefix(self, ids: Sequence[int]) -> list[int]:
        return list(ids)

    def read(self, rows: Sequence[TokenRow], prefix: Any = None) -> list[RowLogprobs]:
        """Read rows that end where tokens are compared, and rows whose own tokens are scored."""
        before: list[int] = prefix or []
        ending = [row for row in rows if _ends_in_choice(row)]
        others = [row for row in rows if not _ends_in_choice(row)]
        chosen = iter(
            self._engine.score_next([[*before, *row.ids] for row in ending], [row.wanted[0] for row in ending])
            if ending
            else []
        )
        scored = iter(
            self._engine.score_rows(
                [[*before, *row.ids, row.wanted[-1][0]] for row in others],
                [len(before) + row.first + 1 for row in others],
            )
            if others
            else []
        )
        return [
            RowLogprobs([next(chosen)], []) if _ends_in_choice(row) else RowLogprobs([[v] for v in next(scored)], [])
            for row in rows
        ]


def _ends_in_choice(row: TokenRow) -> bool:
    return len(row.wanted) == 1 and row.first == len(row.ids) - 1


def check_finish(reason: str | None, name: str) -> str:
    """Why a text ended. One that the engine gave up is not an answer."""
    if reason not in ("stop", "length"):
        raise ModelError(f"{name} gave up a text (finish reason {reason!r})", remedy="run it again")
    return reason


class Reference(NamedTuple):
    """What the transformers library says about a prompt: the likeliest next tokens, and the prompt's own tokens."""

    ids: list[int]
    likeliest: list[int]
    next_logprobs: list[float]
    own_logprobs: list[float]
    """Of the second half of the prompt."""

    @property
    def half(self) -> int:
        return max(1, len(self.ids) // 2)


def compare_with_reference(engine: ServingEngine, name: str, expected: Sequence[Reference]) -> None:
    """Refuse an engine whose probabilities are far from those of the transformers library."""
    after = engine.score_next([one.ids for one in expected], [one.likeliest for one in expected])
    within = engine.score_rows([one.ids for one in expected], [one.half for one in expected])
    checks = {
        "next tokens": [(one.next_logprobs, found) for one, found in zip(expected, after, strict=True)],
        "a prompt's tokens": [(one.own_logprobs, found) for one, found in zip(expected, within, strict=True)],
    }
    for what, pairs in checks.items():
        distance = np.mean([np.abs(np.subtract(wanted, found)).mean() for wanted, found in pairs])
        if not distance <= MAX_DISTANCE:
            raise ModelError(
                f"{name} gives other probabilities of {what} than the transformers library: their logarithms differ by "
                f"{distance:.2f} on average",
                expected=f"at most {MAX_DISTANCE}",
                remedy=f"another version of {name}, or hf: instead",
            )
