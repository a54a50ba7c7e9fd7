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
from collections.abc import Callable, Iterator
from difflib import unified_diff
from pathlib import Path
from typing import Any

FILES = Path(__file__).parents[1] / "tests" / "formats" / "files"
OUTCOMES = ("error", "note", "same", "status", "crash", "fewer", "changed")
NUMBERS = (1, 2, 3)
SEPARATORS = {"trec": " ", "csv": ",", "tsv": "\t"}
LOG = [
    {
        "question": f"who built mill {n}",
        "response": f"Ännchen {n}",
        "contexts": [f"Passage {n}{system} of the mill.", f"Passage {n}{system} of the Ilm."],
        "reference": f"Ännchen {n}",
        "system": system,
        "correct": n % 2,
    }
    for system in "ab"
    for n in NUMBERS
]
TABLE_LOG = [{**row, "contexts": json.dumps(row["contexts"])} for row in LOG]
ANSWERS = [{"system": "a", "query": f"q{n}", "text": f"Ännchen {n}"} for n in NUMBERS]
GRADES = [{"system": system, "query": f"q{n}", "grade": n / 4} for system in "ab" for n in NUMBERS]
QRELS_ROWS = [{"query-id": f"q{n}", "corpus-id": f"d{n}", "score": 1} for n in NUMBERS]


def table(rows: list[list[Any]], separator: str) -> str:
    out = io.StringIO()
    csv.writer(out, delimiter=separator, lineterminator="\n").writerows(rows)
    return out.getvalue()


def records(rows: list[dict[str, Any]], kind: str) -> str:
    if kind == "jsonl":
        return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
    return table([list(rows[0]), *(list(row.values()) for row in rows)], SEPARATORS[kind])


def source_files(ragworth: Any) -> dict[str, tuple[str, Callable[[Path], Any]]]:
    """Texts and readers by the name of the file, whose ending says how it is edited."""
    labels = {f"q{n}": {f"d{n}{d}": int(d == n) for d in NUMBERS} for n in NUMBERS}
    run = {f"q{n}": {f"d{n}{d}": 4.5 - d for d in NUMBERS} for n in NUMBERS}
    metrics = ["nDCG@3", "RR", "AP"]
    lines = [[(f"q{q}", f"d{q}{d}", q, d) for d in NUMBERS] for q in NUMBERS]
    rows = [row for some in lines for row in some]
    outcomes = importlib.import_module("ragworth.formats.outcomes")
    files: dict[str, tuple[str, Callable[[Path], Any]]] = {
        "run.trec": (
            table([[q, "Q0", d, rank, 4.5 - rank, "bm25"] for q, d, _, rank in rows], " "),
            lambda path: ragworth.score(ragworth.read_contexts(path), labels, metrics),
        ),
        "qrels.trec": (
            table([[q, 0, d, int(n == rank)] for q, d, n, rank in rows], " "),
            lambda path: ragworth.score(run, ragworth.read_judgments(path), metrics),
        ),
        "ratings.trec": (table([[q, f"s{n}", d, rank] for q, d, n, rank in rows], " "), ragworth.read_ratings),
        "answers.jsonl": (records(ANSWERS, "jsonl"), lambda path: ragworth.read_answers(path).table),
        "answers.csv": (records(ANSWERS, "csv"), lambda path: ragworth.read_answers(path).table),
        "grades.csv": (records(GRADES, "csv"), outcomes.read),
        "log.jsonl": (records(LOG, "jsonl"), ragworth.load),
        "log.tsv": (records(TABLE_LOG, "tsv"), ragworth.load),
        "beir/corpus.jsonl": (
            records([{"_id": f"d{n}", "title": "", "text": f"Mill {n}"} for n in NUMBERS], "jsonl"),
            ragworth.load,
        ),
        "beir/queries.jsonl": (
            records([{"_id": f"q{n}", "text": f"Who {n}"} for n in NUMBERS], "jsonl"),
            ragworth.load,
        ),
        "beir/qrels/test.tsv": (records(QRELS_ROWS, "tsv"), ragworth.load),
    }
    tools = sorted(path for path in FILES.rglob("*") if path.suffix in (".json", ".jsonl", ".csv"))
    return files | {str(path.relative_to(FILES)): (path.read_text("utf-8"), ragworth.load) for path in tools}


def text_edits(text: str, draw: random.Random) -> Iterator[tuple[str, bytes]]:
    """Edits that any text can have."""
    lines = text.splitlines(keepends=True)
    at = draw.randrange(len(lines))
    before, line, after = "".join(lines[:at]), lines[at], "".join(lines[at + 1 :])
    mark = draw.choice([n for n, letter in enumerate(text) if letter in '{}[]",:\t\n'])
    yield "line doubled", (before + line * 2 + after).encode()
    yield "line cut", (before + line[: len(line) // 2] + "\n" + after).encode()
    yield "lines joined", (before + line.rstrip("\n") + after).encode()
    yield "file cut", text[: draw.randrange(len(text) // 2, len(text) - 1)].encode()
    yield "mark lost", (text[:mark] + text[mark + 1 :]).encode()
    yield "UTF-16", text.encode("utf-16")
    yield "Latin-1", text.encode("latin-1", "replace")


def table_edits(text: str, draw: random.Random, separator: str) -> Iterator[tuple[str, bytes]]:
    """Edits of columns and cells; values change in a column of numbers, where there is one."""
    rows = list(csv.reader(io.StringIO(text), delimiter=separator))
    named = int(separator != " ")
    width, at = range(len(rows[0])), draw.randrange(named, len(rows))
    one, two = draw.sample(width, 2)
    cell = draw.choice([c for c in width if rows[at][c].replace(".", "").isdigit()] or list(width))
    swap = [two if c == one else one if c == two else c for c in width]
    write = lambda some, mark=separator: table(some, mark).encode()  # noqa: E731
    replace = lambda row: [*rows[:at], row, *rows[at + 1 :]]  # noqa: E731
    filled = lambda value: write(replace([value if c == cell else old for c, old in enumerate(rows[at])]))  # noqa: E731
    yield "columns swapped", write([*rows[:named], *([row[c] for c in swap] for row in rows[named:])])
    yield "columns swapped in a row", write(replace([rows[at][c] for c in swap]))
    yield "column dropped", write([[old for c, old in enumerate(row) if c != one] for row in rows])
    yield "cell dropped", write(replace([old for c, old in enumerate(rows[at]) if c != one]))
    yield "separator changed", write(rows, ";")
    yield from ((name, filled(value)) for name, value in (("NaN", "NaN"), ("empty", ""), ("another type", "high")))
    if named:
        yield "key renamed", write([[f"{old}_" if c == one else old for c, old in enumerate(rows[0])], *rows[1:]])
        yield "header lost", write(rows[1:])


def tree_edits(text: str, draw: random.Random, whole: bool) -> Iterator[tuple[str, bytes]]:
    """Edits of keys and values of JSON, at any depth; ``whole``: one document, not a row on each line."""
    changes: dict[str, Callable[[dict[str, Any], str, str], dict[str, Any]]] = {
        "field dropped": lambda old, key, _: {name: old[name] for name in old if name != key},
        "key renamed": lambda old, key, _: {f"{name}_" if name == key else name: old[name] for name in old},
        "values swapped": lambda old, key, other: old | {key: old[other], other: old[key]},
        "NaN": lambda old, key, _: old | {key: float("nan")},
        "null": lambda old, key, _: old | {key: None},
        "another type": lambda old, key, _: old | {key: {"value": old[key]}},
    }
    for name, change in changes.items():
        document = json.loads(text) if whole else [json.loads(line) for line in text.splitlines()]
        place = draw.choice([each for each in _objects(document) if len(each) > 1])
        new = change(dict(place), *draw.sample(sorted(place), 2))
        place.clear()
        place.update(new)
        yield (
            name,
            (json.dumps(document, ensure_ascii=False, indent=1) if whole else records(document, "jsonl")).encode(),
        )


def _objects(value: Any) -> list[dict[str, Any]]:
    inside = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return [*([value] if isinstance(value, dict) else []), *(found for each in inside for found in _objects(each))]


def tables_of(loaded: Any) -> tuple[set[tuple[str, ...]], set[str]]:
    """All rows of all tables with their number, and the notes."""
    parts = {"": loaded}
    if hasattr(loaded, "collection"):
        parts = {name: getattr(loaded, name) for name in ("contexts", "answers", "outcomes")}
        names = ("queries", "passages", "answers", "subquestions", "relevance", "ratings")
        parts |= {f"texts.{name}": getattr(loaded.collection, name) for name in names} | {"texts": loaded.collection}
    notes = {str(note).split(": ", 1)[-1] for part in parts.values() for note in getattr(part, "notes", ())}
    rows: Counter[tuple[str, ...]] = Counter()
    for name, part in parts.items():
        if hasattr(frame := getattr(part, "frame", part), "iter_rows"):
            columns = [column for column in sorted(frame.columns) if column != "source"]
            with_value = frame["status"] == "ok" if "status" in columns else [True] * frame.height
            some = zip(with_value, frame.select(columns).iter_rows(), strict=True)
            rows.update(("" if ok else "missing", name, *map(str, row)) for ok, row in some)
    return {(*row, str(count)) for row, count in rows.items()}, notes


def outcome_of(ragworth: Any, name: str, data: bytes) -> str:
    """The outcome of reading a file with other content, compared with the file as it was."""
    files = source_files(ragworth)
    folder = name.split("/")[0] if name.startswith("beir/") else name
    results = []
    for content in (files[name][0].encode(), data):
        with tempfile.TemporaryDirectory() as place:
            some = {each: text.encode() for each, (text, _) in files.items() if each.startswith(f"{folder}/")}
            for each, written in (some | {name: content}).items():
                Path(place, each).parent.mkdir(parents=True, exist_ok=True)
                Path(place, each).write_bytes(written)
            try:
                results.append(tables_of(files[name][1](Path(place, folder))))
            except ragworth.RagworthError:
                if not results:
                    raise
                return "error"
            except Exception:
                return "crash"
    (before, told), (after, says) = results
    if before == after or says - told:
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
    files = source_files(ragworth)
    counts: dict[tuple[str, str], Counter[str]] = {}
    for number in range(given.edits):
        name = list(files)[number % len(files)]
        text, draw, kind = files[name][0], random.Random(f"{given.seed} {number}"), name.rpartition(".")[2]
        tree = kind.startswith("json")
        more = tree_edits(text, draw, kind == "json") if tree else table_edits(text, draw, SEPARATORS[kind])
        edit, data = draw.choice([*text_edits(text, draw), *more])
        outcome = outcome_of(ragworth, name, data)
        for key in (("edit", edit), ("file", name), ("all", "all")):
            counts.setdefault(key, Counter())[outcome] += 1
        if outcome in OUTCOMES[4:]:
            diff = list(unified_diff(text.splitlines(), data.decode("utf-8", "replace").splitlines(), lineterm="", n=0))
            print(f"{outcome}: {name}, {edit} (number {number})", *(line[:150] for line in diff[3:7]), sep="\n    ")
    print(f"\n| | {' | '.join(OUTCOMES)} |\n| --- |{' ---: |' * len(OUTCOMES)}")
    for (_, name), found in sorted(counts.items()):
        print(f"| {name} | {' | '.join(str(found[each]) for each in OUTCOMES)} |")


if __name__ == "__main__":
    main()
