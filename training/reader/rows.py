"""Examples as the tokens that the model reads and says.

    python -m training.reader.rows examples.jsonl --weights SmolLM2-135M-Instruct.Q4_1.gguf -o examples.npz

writes the tokens to a file, so that several runs of ``train`` don't each encode the same examples, which takes minutes.
"""

from __future__ import annotations

import argparse
import json
import os
import random
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import lru_cache, partial
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ragworth.llm.contract import Prompt, PromptMessage
from ragworth.llm.local.prompt_encoding import PromptEncoder
from ragworth.tasks.answerability import NO_RESPONSE_LABEL

TOKEN_FILE = ".npz"
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
    found = _unpacked(path, part) if path.suffix == TOKEN_FILE else _encoded(_examples(path, part), writer)
    return (row for row in found if len(row.ids) <= longest)


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


def _unpacked(path: Path, part: str) -> Iterator[Row]:
    with np.load(path) as file:
        arrays = {name: file[name] for name in file.files}
    tokens, ends = arrays["tokens"], np.cumsum(arrays["size"])
    for number in np.flatnonzero(arrays["part"] == part).tolist():
        ids = tokens[ends[number] - arrays["size"][number] : ends[number]].tolist()
        start, turn = int(arrays["start"][number]), int(arrays["turn"][number])
        yield Row(ids, start, str(arrays["kind"][number]), bool(arrays["declines"][number]), turn)


def end_of(writer: PromptEncoder) -> int:
    """The token that ends a turn: that of chats where the model has it, or else its first."""
    (ids,) = writer.tokenizer.encode(["<|im_end|>"], whole=False)
    return ids[0] if len(ids) == 1 and ids[0] in writer.ends else min(writer.ends)


def batches(some: Sequence[Row], tokens: int, draw: random.Random | None) -> list[list[Row]]:
    """Rows of similar length together, at most so many tokens with padding; in any order for training."""
    made: list[list[Row]] = []
    for row in sorted(some, key=lambda row: len(row.ids) + (draw.random() * 24 if draw else 0)):
        if not made or len(row.ids) * (len(made[-1]) + 1) > tokens:
            made.append([])
        made[-1].append(row)
    if draw:
        draw.shuffle(made)
    return made


@lru_cache(maxsize=1)
def _encoder(weights: Path) -> PromptEncoder:
    from ragworth.llm.local.gguf_torch import load_gguf_llama

    return load_gguf_llama(weights).encoder


def _encode_lines(lines: Sequence[str], weights: Path) -> list[tuple[str, Row]]:
    """The part and the tokens of each example."""
    items = [json.loads(line) for line in lines]
    parts = dict.fromkeys(item["part"] for item in items)
    return [
        (part, row)
        for part in parts
        for row in _encoded([item for item in items if item["part"] == part], _encoder(weights))
    ]


def pack(examples: Path, weights: Path, output: Path, processes: int) -> int:
    """Encode a file of examples, and write the tokens; returns how many examples there are."""
    with examples.open(encoding="utf-8") as file, ProcessPoolExecutor(processes) as pool:
        lines = iter(lambda: list(islice(file, ENCODED_TOGETHER)), [])
        found = [pair for some in pool.map(partial(_encode_lines, weights=weights), lines) for pair in some]
    every = [row for _, row in found]
    tokens = np.concatenate([np.array(row.ids, np.uint32) for row in every])
    np.savez(
        output,
        tokens=tokens.astype(np.min_scalar_type(tokens.max())),
        size=np.array([len(row.ids) for row in every]),
        start=np.array([row.start for row in every]),
        part=np.array([part for part, _ in found]),
        kind=np.array([row.kind for row in every]),
        declines=np.array([row.declines for row in every]),
        turn=np.array([row.turn for row in every]),
    )
    return len(every)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description="Encode examples once for several runs.")
    parser.add_argument("examples", type=Path)
    parser.add_argument("--weights", type=Path, required=True)
    parser.add_argument("--processes", type=int, default=os.cpu_count() or 1)
    parser.add_argument("-o", "--output", type=Path, required=True)
    given = parser.parse_args(arguments)
    if given.output.suffix != TOKEN_FILE:
        parser.error(f"the output's name must end in {TOKEN_FILE}")
    print(f"{pack(given.examples, given.weights, given.output, given.processes):,} examples in {given.output}")


if __name__ == "__main__":
    main()
