"""A damaged file that ragworth still reads must mean what it says: its table is the one of a strict second reader.

    python -m tests.formats.test_second_reader [NUMBER [SEED]]

compares NUMBER mutations of each file and prints how many of them were read.
"""

from __future__ import annotations

import random
import re
import sys
import tempfile
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from ragworth.errors import FormatError, RagworthError
from ragworth.formats import read_contexts, read_judgments, read_ratings
from tests.formats import strict


class Case(NamedTuple):
    """A file of a format, ragworth's reader and the other."""

    content: bytes
    ours: Callable[[str, bool], list[Any]]
    theirs: Callable[[bytes, bool], list[Any]]
    skips: bool = False
    """Whether the other reader can leave out bad lines, too."""


def contexts(prefix: str, *names: str) -> Callable[[str, bool], list[Any]]:
    columns = names or ("query", "rank", "passage", "score")
    return lambda path, skip: read_contexts(prefix + path, skip_bad_lines=skip).frame.select(columns).rows()


def judgments(prefix: str) -> Callable[[str, bool], list[Any]]:
    columns = ["query", "passage", "value"]
    return lambda path, skip: read_judgments(prefix + path, skip_bad_lines=skip).frame.select(columns).rows()


def ratings(path: str, skip: bool) -> list[Any]:
    columns = ["query", "passage", "subquestion", "value"]
    return read_ratings(f"trec:{path}", skip_bad_lines=skip).frame.select(columns).rows()


JSON = b"".join(
    b'{"query_id": "q%d", "query": "why %d?", "answers": ["so"], "retrieved_context": [{"doc_id": "d1", "text": "one", '
    b'"score": 1.5}, {"doc_id": %d, "text": "two \\u00e4", "score": 1}]}\n' % (n, n, n + 5)
    for n in range(3)
)
CASES: dict[str, Case] = {
    "run": Case(
        b"q1 Q0 d1 1 2.5 t\nq1 Q0 d2 2 1e-3 t\nq2\tQ0\td1\t1\t-7\tt\r\n\n# note\n"
        b"q2 Q0 d\xc3\xa4 2 -8 t\nq3 Q0 d1 1 .5 t\n",
        contexts("trec:"),
        strict.run,
        True,
    ),
    "clean run": Case(
        b"".join(b"q%d Q0 d%d %d %d.25 tag\n" % (n // 4, n, n % 4, 20 - n) for n in range(16)),
        contexts("trec:"),
        strict.run,
        True,
    ),
    "qrels": Case(b"q1 0 d1 1\nq1 0 d2 0\n\nq2 0  d1 0.5\nq2 0 d2 -1\n", judgments("trec:"), strict.qrels, True),
    "subtopics": Case(b"q1 s1 d1 5\nq1 s2 d1 0\nq2 s1 d1 3\nq2 s1 d2 1e0\n", ratings, strict.subtopics, True),
    "csv run": Case(
        b"query,passage,score\nq1,d1,2.5\nq1,d2,1\nq2,d1,0.5\nq2,d2,-3e2\n", contexts("table:"), strict.csv_run
    ),
    "quoted csv run": Case(
        b'qid;docno;score;text\n"q1";"d""1";2.5;a\nq1;"d;2";1;"b\nc"\nq2;d1;0.5;"d"\n',
        contexts("table:"),
        strict.csv_run,
    ),
    "tsv judgments": Case(
        b"query-id\tcorpus-id\tvalue\r\nq1\td1\t1\r\nq1\td2\t0\r\nq2\td2\t2\r\n",
        judgments("table:"),
        strict.csv_judgments,
    ),
    "jsonl": Case(JSON, contexts("jsonl:", "system", "query", "rank", "passage", "score"), strict.json_run),
}
PIECES = [
    b"\n",
    b"\r",
    b"\t",
    b" ",
    b",",
    b";",
    b'"',
    b"\\",
    b"\0",
    b"\xff",
    b"\xc3",
    b"\xef\xbb\xbf",
    b"#",
    b"[",
    b"}",
]
PIECES += [
    b"\x0b",
    b"\x0c",
    b"\x1c",
    b"\x85",
    b"\xc2\xa0",
    b"\xe2\x80\xa8",
    b"null",
    b"NaN",
    b"true",
    b'""',
    b"q1",
    b"+",
]
NUMBERS = [
    b"1e999",
    b"-1",
    b"0",
    b"0.5",
    b"1" + b"0" * 400,
    b"18446744073709551616",
    b"9007199254740993",
    b"nan",
    b"-inf",
]
NUMBERS += [
    b"Infinity",
    b"1_0",
    b"+5",
    b"1.",
    b".5",
    b"5e-324",
    b"2e-324",
    b"-0",
    b"0x1p3",
    b"1e",
    b"",
    b"1,5",
    b"\xd9\xa1",
]
NUMBERS += [b"0.1000000000000000055511151231257827", b"1e23", b"8.41e21", b"123456789012345678901234567890e-20"]


def damaged(content: bytes, dice: random.Random) -> bytes:
    """A file after one to three accidents."""
    for _ in range(dice.choice([1, 1, 2, 3])):
        at = dice.randrange(len(content) + 1)
        end = min(len(content), at + dice.choice([1, 1, 2, 5, 12]))
        match dice.choice(["flip", "delete", "insert", "insert", "cut", "repeat", "number", "number"]):
            case "flip":
                content = (
                    content[:at] + bytes(byte ^ dice.randrange(1, 256) for byte in content[at:end]) + content[end:]
                )
            case "delete":
                content = content[:at] + content[end:]
            case "insert":
                content = content[:at] + dice.choice(PIECES) + content[at:]
            case "cut":
                content = content[:at]
            case "repeat":
                content = content[:end] + content[at:]
            case "number":
                if numbers := list(re.finditer(rb"-?[0-9][0-9.e-]*", content)):
                    hit = dice.choice(numbers)
                    content = content[: hit.start()] + dice.choice(NUMBERS) + content[hit.end() :]
    return content


def compare(case: Case, content: bytes, path: Path) -> str:
    """Read a file both ways; what ragworth accepts must be what the other reads."""
    path.write_bytes(content)
    outcome = "refused"
    for skip in (False, True)[: 1 + case.skips]:
        try:
            ours = case.ours(str(path), skip)
        except RagworthError:
            continue
        try:
            theirs = case.theirs(content, skip)
        except strict.Refused as error:
            raise AssertionError(f"the strict reader refuses ({error}), skip={skip}: {content!r}\n{ours}") from error
        assert [tuple(row) for row in ours] == theirs, f"skip={skip}: {content!r}"
        outcome = outcome if skip else "read"
    return outcome


def compare_all(name: str, number: int, seed: int, folder: Path) -> Counter[str]:
    dice = random.Random(f"{name} {seed}")
    found: Counter[str] = Counter()
    for _ in range(number):
        content = damaged(CASES[name].content, dice)
        if not content.startswith((b"\x1f\x8b", b"\x28\xb5\x2f\xfd")):
            found[compare(CASES[name], content, folder / "file")] += 1
    return found


@pytest.mark.parametrize("name", CASES)
def test_the_file_itself(name: str, tmp_path: Path) -> None:
    assert compare(CASES[name], CASES[name].content, tmp_path / "file") == "read"


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_what_is_read_is_right(name: str, tmp_path: Path) -> None:
    found = compare_all(name, 120, 1, tmp_path)
    assert found["read"] >= 10 and found["refused"] >= 10


def test_fields_are_counted_on_every_line(tmp_path: Path) -> None:
    """Two lines were read, the second with a wrong score: one field too many here made up for one missing there."""
    path = tmp_path / "run.txt"
    clean = [b"q1 Q0 d%d %d %d.5 tag" % (n, n, 9 - n) for n in range(8)]
    for extra in (b"q2 Q0 d1 1 1 7.5 tag", b"q2 Q0 d1 1 7.5 a tag"):
        path.write_bytes(b"\n".join([*clean, extra, b"q3 Q0 d1 1 7.5"]) + b"\n")
        with pytest.raises(FormatError, match="7 fields") as caught:
            read_contexts(path)
        assert caught.value.line == 9


@pytest.mark.parametrize(
    ("rows", "found"),
    [
        (b'q1,d1,"one\nq2,d2,two\n', "a quote is opened but never closed"),
        (b'q1,d1,"one"two\n', "there is text after a closing quote"),
    ],
)
def test_quotes_that_would_swallow_rows(rows: bytes, found: str, tmp_path: Path) -> None:
    path = tmp_path / "run.csv"
    path.write_bytes(b'query,passage,note,score\nq0,d0,"a\nb",1\n'.replace(b",score", b"").replace(b",1", b"") + rows)
    with pytest.raises(FormatError, match=found) as caught:
        read_contexts(path)
    assert caught.value.line == 4


def main(number: str = "2000", seed: str = "0") -> None:
    with tempfile.TemporaryDirectory() as folder:
        for name in CASES:
            try:
                sys.stdout.write(f"{name}: {dict(compare_all(name, int(number), int(seed), Path(folder)))}\n")
            except AssertionError as error:
                sys.stdout.write(f"{name}: {error}\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
