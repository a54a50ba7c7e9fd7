"""Examples as the tokens that the model reads and says."""

from __future__ import annotations

import json
import random
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

from ragworth.judging.labels import NO_RESPONSE_LABEL
from ragworth.llm.contract import Prompt, PromptMessage
from ragworth.llm.local.prompt_encoding import PromptEncoder

ENCODED_TOGETHER = 2048


class Row(NamedTuple):
    """Tokens of a prompt and, from ``start``, of what is to be said, with the end of the turn."""

    ids: list[int]
    start: int
    kind: str
    declines: bool
    turn: int
    """The pass that it is for."""


def rows(path: Path, writer: PromptEncoder, part: str, longest: int) -> Iterator[Row]:
    """Examples of a part as tokens, exactly as the embedded model reads them; longer ones are left out."""
    return (row for row in _encoded(_examples(path, part), writer) if len(row.ids) <= longest)


def _examples(path: Path, part: str) -> Iterator[dict[str, Any]]:
    with path.open(encoding="utf-8") as file:
        yield from (item for item in map(json.loads, file) if item["part"] == part)


def _encoded(items: Iterable[dict[str, Any]], writer: PromptEncoder) -> Iterator[Row]:
    end, left = end_of(writer), iter(items)
    while some := list(islice(left, ENCODED_TOGETHER)):
        prompts = [Prompt(tuple(PromptMessage(role, text) for role, text in item["messages"])) for item in some]
        for item, written in zip(some, writer.ids(prompts, continued=True), strict=True):
            after = writer.after(written, item["answer"])
            if after is not None:
                ids = [*written.ids, *after, end]
                yield Row(ids, len(written.ids), item["kind"], item["answer"] == NO_RESPONSE_LABEL, item["pass"])


def end_of(writer: PromptEncoder) -> int:
    """The token that ends a turn: that of chats where the model has it, or else its first."""
    (ids,) = writer.tokenizer.encode(["<|im_end|>"], whole=False)
    return ids[0] if len(ids) == 1 and ids[0] in writer.ends else min(writer.ends)


def batches(some: Sequence[Row], tokens: int, draw: random.Random) -> list[list[Row]]:
    """Rows of similar length together, about so many tokens with padding, in any order."""
    made: list[list[Row]] = []
    for row in sorted(some, key=lambda row: len(row.ids) + draw.random() * 24):
        if not made or len(row.ids) * (len(made[-1]) + 1) > tokens:
            made.append([])
        made[-1].append(row)
    draw.shuffle(made)
    return made
