"""Mistakes in a file that change its numbers without a word: single edits of small valid files.

An edit ends as an error, as a new note, with the same tables, with rows whose status says why they have no value, as a
crash, with fewer rows, or with other rows. The last three are listed. ``--src`` measures another version.
"""

from __future__ import annotations

import argparse
import csv
import importlib
import io
import json
import random
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Sequence
from difflib import unified_diff
from pathlib import Path
from typing import Any

FILES = Path(__file__).parents[1] / "tests" / "formats" / "files"
OUTCOMES = ("error", "note", "same", "status", "crash", "fewer", "changed")
SEPARATORS = {"trec": " ", "csv": ",", "tsv": "\t"}
LINES = [(f"q{q}", f"d{q}{rank}", q, rank) for q in (1, 2, 3) for rank in (1, 2, 3)]
LOG: list[dict[str, Any]] = [
    {"question": q, "contexts": [f"{d} of the mill", f"{d} of the Ilm"], "response": f"Ännchen {n}", "grade": n / 4}
    for q, d, n, _ in LINES[::3]
]
TEXTS: dict[str, Sequence[Any]] = {
    "run.trec": [[q, "Q0", d, rank, 4.5 - rank, "bm25"] for q, d, _, rank in LINES],
    "qrels.trec": [[q, 0, d, int(n == rank)] for q, d, n, rank in LINES],
    "ratings.trec": [[q, f"s{n}", d, rank] for q, d, n, rank in LINES],
    "answers.jsonl": [{"system": "a", "query": q, "text": f"Ännchen {n}"} for q, _, n, _ in LINES[::3]],
    "grades.csv": [{"system": system, "query": q, "grade": n / 4} for system in "ab" for q, _, n, _ in LINES[::3]],
    "log.jsonl": LOG,
    "log.tsv": [{**row, "contexts": json.dumps(row["contexts"])} for row in LOG],
    "beir/corpus.jsonl": [{"_id": d, "title": "", "text": f"Mill {d}"} for _, d, _, _ in LINES],
    "beir/queries.jsonl": [{"_id": q, "text": f"Who built {n}"} for q, _, n, _ in LINES[::3]],
    "beir/qrels/test.tsv": [{"query-id": q, "corpus-id": d, "score": 1} for q, d, _, _ in LINES[::3]],
}
READERS = {
    "ratings.trec": "ragworth:read_ratings",
    "answers.jsonl": "ragworth:read_answers",
    "grades.csv": "ragworth.formats.outcomes:read",
}


def write_rows(rows: Sequence[Any], kind: str) -> str:
    """Rows as JSONL, or as a table: lists as they are, dicts below a header."""
    if kind == "jsonl":
        return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
    out = io.StringIO()
    cells = [list(rows[0]), *(list(row.values()) for row in rows)] if isinstance(rows[0], dict) else rows
    csv.writer(out, delimiter=SEPARATORS[kind], lineterminator="\n").writerows(cells)
    return out.getvalue()


def text_edits(text: str, draw: random.Random) -> dict[str, str]:
    """Edits that any text can have."""
    lines = text.splitlines(keepends=True)
    at = draw.randrange(len(lines))
    before, line, after = "".join(lines[:at]), lines[at], "".join(lines[at + 1 :])
    mark = draw.choice([n for n, letter in enumerate(text) if letter in '{}[]",:\t\n'])
    return {
        "line doubled": before + line * 2 + after,
        "line cut": before + line[: len(line) // 2] + "\n" + after,
        "lines joined": before + line.rstrip("\n") + after,
        "file cut": text[: draw.randrange(len(text) // 2, len(text) - 1)],
        "mark lost": text[:mark] + text[mark + 1 :],
        "UTF-16": text,
    }


def table_edits(text: str, draw: random.Random, kind: str) -> dict[str, str]:
    """Edits of columns and cells; values change in a column of numbers, where there is one."""
    rows, named = list(csv.reader(io.StringIO(text), delimiter=SEPARATORS[kind])), kind != "trec"
    width, at = range(len(rows[0])), draw.randrange(named, len(rows))
    one, two = draw.sample(width, 2)
    cell = draw.choice([c for c in width if rows[at][c].replace(".", "").isdigit()] or list(width))
    swapped = [[row[{one: two, two: one}.get(c, c)] for c in width] for row in rows]
    edits = {
        "columns swapped": [*rows[:named], *swapped[named:]],
        "column dropped": [row[:one] + row[one + 1 :] for row in rows],
        "values swapped": [*rows[:at], swapped[at], *rows[at + 1 :]],
        "field dropped": [*rows[:at], rows[at][:one] + rows[at][one + 1 :], *rows[at + 1 :]],
    }
    for name, value in (("NaN", "NaN"), ("null", ""), ("another type", "high")):
        edits[name] = [*rows[:at], [value if c == cell else rows[at][c] for c in width], *rows[at + 1 :]]
    if named:
        renamed = [f"{name}_" if c == one else name for c, name in enumerate(rows[0])]
        edits |= {"key renamed": [renamed, *rows[1:]], "header lost": rows[1:]}
    written = {name: write_rows(edited, kind) for name, edited in edits.items()}
    return written | {"separator changed": write_rows(rows, "csv" if kind != "csv" else "tsv")}


def tree_edits(text: str, draw: random.Random, kind: str) -> dict[str, str]:
    """Edits of keys and values of JSON, at any depth."""
    changes: dict[str, Callable[[dict[str, Any], str, str], dict[str, Any]]] = {
        "field dropped": lambda old, key, _: {name: old[name] for name in old if name != key},
        "key renamed": lambda old, key, _: {f"{name}_" if name == key else name: old[name] for name in old},
        "values swapped": lambda old, key, other: old | {key: old[other], other: old[key]},
        "NaN": lambda old, key, _: old | {key: float("nan")},
        "null": lambda old, key, _: old | {key: None},
        "another type": lambda old, key, _: old | {key: {"value": old[key]}},
    }
    written = {}
    for name, change in changes.items():
        document = json.loads(text) if kind == "json" else [json.loads(line) for line in text.splitlines()]
        place = draw.choice([each for each in _objects(document) if len(each) > 1])
        new = change(dict(place), *draw.sample(sorted(place), 2))
        place.clear()
        place.update(new)
        written[name] = json.dumps(document, indent=1) if kind == "json" else write_rows(document, kind)
    return written


def _objects(value: Any) -> list[dict[str, Any]]:
    inside = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return [*([value] if isinstance(value, dict) else []), *(found for each in inside for found in _objects(each))]


def read_tables(ragworth: Any, name: str, folder: Path) -> tuple[set[tuple[str, ...]], set[str]]:
    """All rows of all tables of a file with their number, and the notes. Runs and qrels are scored."""
    path, metrics = str(folder / name), ["nDCG@3", "RR", "AP"]
    if name == "run.trec":
        labels = {f"q{q}": {f"d{q}{d}": int(d == q) for d in (1, 2, 3)} for q in (1, 2, 3)}
        parts = {"": ragworth.score(ragworth.read_contexts(path), labels, metrics)}
    elif name == "qrels.trec":
        run = {f"q{q}": {f"d{q}{d}": 4.5 - d for d in (1, 2, 3)} for q in (1, 2, 3)}
        parts = {"": ragworth.score(run, ragworth.read_judgments(path), metrics)}
    elif name in READERS:
        reader, _, function = READERS[name].partition(":")
        table = getattr(importlib.import_module(reader), function)(path)
        parts = {"": getattr(table, "table", table)}
    else:
        loaded = ragworth.load(str(folder / "beir") if name.startswith("beir") else path)
        parts = {each: getattr(loaded, each) for each in ("contexts", "answers", "outcomes")}
        texts = ("queries", "passages", "answers", "subquestions", "relevance", "ratings")
        parts |= {f"texts.{each}": getattr(loaded.collection, each) for each in texts} | {"texts": loaded.collection}
    rows: Counter[tuple[str, ...]] = Counter()
    for part, table in parts.items():
        if hasattr(frame := getattr(table, "frame", table), "iter_rows"):
            columns = [column for column in sorted(frame.columns) if column != "source"]
            has_value = frame["status"] == "ok" if "status" in columns else [True] * frame.height
            some = zip(has_value, frame.select(columns).iter_rows(), strict=True)
            rows.update(("" if ok else "missing", part, *map(str, row)) for ok, row in some)
    notes = {str(note).split(": ", 1)[-1] for table in parts.values() for note in getattr(table, "notes", ())}
    return {(*row, str(count)) for row, count in rows.items()}, notes


def find_outcome(ragworth: Any, name: str, texts: dict[str, str], data: bytes) -> str:
    """The outcome of reading a file with other content, compared with the file as it was."""
    results = []
    for content in (texts[name].encode(), data):
        with tempfile.TemporaryDirectory() as folder:
            for each, written in {**{each: texts[each].encode() for each in TEXTS}, name: content}.items():
                Path(folder, each).parent.mkdir(parents=True, exist_ok=True)
                Path(folder, each).write_bytes(written)
            try:
                results.append(read_tables(ragworth, name, Path(folder)))
            except Exception as error:
                if not results:
                    raise
                return "error" if isinstance(error, ragworth.RagworthError) else "crash"
    (before, known), (after, notes) = results
    if before == after or notes - known:
        return "same" if before == after else "note"
    new = after - before
    return "fewer" if not new else "status" if all(row[0] for row in new) else "changed"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--edits", type=int, default=300)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--src", help="folder with another version of ragworth")
    given = parser.parse_args()
    sys.path[:0] = [given.src] if given.src else []
    ragworth = importlib.import_module("ragworth")
    tools = sorted(path for path in FILES.rglob("*") if path.suffix in (".json", ".jsonl", ".csv"))
    texts = {name: write_rows(rows, name.rpartition(".")[2]) for name, rows in TEXTS.items()}
    texts |= {str(path.relative_to(FILES)): path.read_text("utf-8") for path in tools}
    counts: dict[tuple[str, str], Counter[str]] = {}
    for number in range(given.edits):
        name = list(texts)[number % len(texts)]
        text, draw, kind = texts[name], random.Random(f"{given.seed} {number}"), name.rpartition(".")[2]
        edits = text_edits(text, draw) | (tree_edits if kind.startswith("json") else table_edits)(text, draw, kind)
        edit, edited = draw.choice(list(edits.items()))
        outcome = find_outcome(ragworth, name, texts, edited.encode("utf-16" if edit == "UTF-16" else "utf-8"))
        for key in (("edit", edit), ("file", name), ("all", "all")):
            counts.setdefault(key, Counter())[outcome] += 1
        if outcome in OUTCOMES[4:]:
            diff = list(unified_diff(text.splitlines(), edited.splitlines(), lineterm="", n=0))[3:7]
            print(f"{outcome}: {name}, {edit} (number {number})", *(line[:150] for line in diff), sep="\n    ")
    print(f"\n| | {' | '.join(OUTCOMES)} |\n| --- |{' ---: |' * len(OUTCOMES)}")
    for (_, name), found in sorted(counts.items()):
        print(f"| {name} | {' | '.join(str(found[each]) for each in OUTCOMES)} |")


if __name__ == "__main__":
    main()
