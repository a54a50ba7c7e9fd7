"""Conversations about the demo's archipelago, with follow-ups written by hand.

    python -m training.rewriter.archipelago build/archipelago

``archipelago.tsv`` says how each question of ``examples/demo`` is asked in a conversation; the demo's question is the
gold rewrite. Another style than that of the rules, on another collection: nothing is trained on it.
"""

from __future__ import annotations

import argparse
import csv
import json
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from training.rewriter.conversations import as_json, write_lines

TURNS = Path(__file__).with_suffix(".tsv")
DEMO = Path(__file__).parents[2] / "examples" / "demo"


def rows(questions: dict[str, Any], lines: Sequence[dict[str, str]]) -> list[dict[str, object]]:
    """The turns in ragworth's format of conversations. The assistant replies with the first accepted answer."""
    histories: dict[str, list[dict[str, str]]] = {}
    found: list[dict[str, object]] = []
    for line in lines:
        question = questions[line["query"]]
        history = histories.setdefault(line["conversation"], [])
        found.append(
            {
                "query": line["query"],
                "text": line["text"],
                "conversation": line["conversation"],
                "turn": len(history) // 2 + 1,
                "history": list(history),
                "rewrite": question["text"],
                "answers": question["answers"],
            }
        )
        history += [{"role": "user", "text": line["text"]}, {"role": "assistant", "text": f"{question['answers'][0]}."}]
    return found


def write(folder: Path) -> int:
    """Conversations, passages, labels and kinds, in a new folder; the number of turns."""
    with TURNS.open(encoding="utf-8", newline="") as file:
        lines = list(csv.DictReader(file, delimiter="\t"))
    queries = (DEMO / "queries.jsonl").read_text(encoding="utf-8").splitlines()
    questions = {row["_id"]: row for row in map(json.loads, queries)}
    labels = (DEMO / "qrels.txt").read_text(encoding="utf-8").splitlines()
    asked = {line["query"] for line in lines}
    folder.mkdir(parents=True)
    write_lines(folder / "conversations.jsonl", as_json(rows(questions, lines)))
    write_lines(folder / "kinds.tsv", ["query\tkind", *(f"{line['query']}\t{line['kind']}" for line in lines)])
    write_lines(folder / "qrels.txt", [label for label in labels if label.split()[0] in asked])
    shutil.copyfile(DEMO / "passages.jsonl", folder / "passages.jsonl")
    return len(lines)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description="Write the conversations about the demo's archipelago.")
    parser.add_argument("folder", type=Path, help="new folder to write to")
    given = parser.parse_args(arguments)
    if given.folder.exists():
        parser.error(f"{given.folder} exists; name a new folder")
    print(f"{write(given.folder)} turns")


if __name__ == "__main__":
    main()
