"""Whatever a file holds, a reader gives a table or a ragworth error that fits on a screen."""

from __future__ import annotations

import gzip
import io
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from backports import zstd
from hypothesis import event, given
from hypothesis import strategies as st

from ragworth.core.errors import RagworthError
from ragworth.data import Contexts, Judgments, Ratings
from ragworth.formats import FORMATS, load, read_contexts, read_judgments, read_ratings
from ragworth.formats.contract import LoadedCollection
from tests.strategies import examples

READERS: dict[str, Any] = {
    "contexts": read_contexts,
    "judgments": read_judgments,
    "ratings": read_ratings,
    "load": load,
}
KINDS = {"contexts": Contexts, "judgments": Judgments, "ratings": Ratings, "load": LoadedCollection}


def parquet(**columns: Any) -> bytes:
    stream = io.BytesIO()
    pl.DataFrame(columns).write_parquet(stream)
    return stream.getvalue()


PASSAGE = {
    "paragraph_id": "d1",
    "text": "one",
    "paragraph_data": {
        "judgments": [{"relevance": 1}],
        "rankings": [{"method": "bm25", "rank": 1, "score": 0.5}, {"method": "dense", "rank": 2, "score": 12}],
    },
    "exam_grades": [{"self_ratings": [{"question_id": "s1", "self_rating": 4}]}],
}
CONTEXT = {
    "query_id": "q1",
    "query": "why?",
    "answers": ["so"],
    "retrieved_context": [{"doc_id": "d1", "text": "one", "score": 1.5}, {"doc_id": 7, "text": "two", "score": 1}],
}
EXAM = "\n".join(json.dumps([query, [PASSAGE]]) for query in ("q1", "q2")).encode()
JSONL = "\n".join(json.dumps(CONTEXT | {"query_id": query, "query": query}) for query in ("q1", "q2")).encode()
TEXTS = b'{"_id": "d1", "title": "T", "text": "one"}\n{"_id": "d2", "text": "two"}\n'
QRELS_TSV = b"query-id\tcorpus-id\tscore\nq1\td1\t1\nq1\td2\t0\nq2\td2\t2\n"


def lines(*rows: object) -> bytes:
    return "\n".join(map(json.dumps, rows)).encode()


TURN = {"query": "q2", "text": "And so?", "conversation": "c", "turn": 2, "rewrite": "And why so?", "answers": ["so"]}
CANARD = {
    "QuAC_dialog_id": "d",
    "Question_no": 2,
    "Question": "And so?",
    "Rewrite": "Why?",
    "History": ["T", "S", "why?", "so"],
}
CAST = {
    "number": 1,
    "title": "T",
    "turn": [{"number": 1, "raw_utterance": "why?"}, {"number": 2, "raw_utterance": "so?"}],
}
MTRAG = {
    "task_id": "c<::>2",
    "conversation_id": "c",
    "input": [
        {"speaker": "user", "text": "why?"},
        {"speaker": "agent", "text": "so"},
        {"speaker": "user", "text": "so?"},
    ],
    "contexts": [{"document_id": "d1", "text": "one"}],
    "targets": [{"speaker": "agent", "text": "so"}],
}

VALID: dict[tuple[str, str], list[bytes]] = {
    ("conversations", "load"): [lines(TURN | {"history": [{"role": "user", "text": "why?"}]})],
    ("canard", "load"): [json.dumps([CANARD]).encode()],
    ("cast", "load"): [json.dumps([CAST]).encode()],
    ("mtrag", "load"): [lines(MTRAG)],
    ("trec", "contexts"): [b"q1 Q0 d1 1 2.5 t\nq1 Q0 d2 2 1e-3 t\nq2\tQ0\td1\t1\t-7\tt\r\n#\nq2 Q0 d3 2 -8 t\n"],
    ("trec", "judgments"): [b"q1 0 d1 1\nq1 0 d2 0\n\nq2 0  d1 0.5\n"],
    ("trec", "ratings"): [b"q1 s1 d1 5\nq1 s2 d1 0\nq2 s1 d1 3\n"],
    ("table", "contexts"): [
        b"query,passage,score\nq1,d1,2.5\nq1,d2,1\nq2,d1,0.5\n",
        b"system\tquery\tpassage\trank\na\tq1\td1\t1\na\tq1\td2\t2\nb\tq1\td1\t1\n",
        parquet(query=["q1", "q1"], passage=["d1", "d2"], score=[1.5, 0.5]),
    ],
    ("table", "judgments"): [
        b"query,passage,aspect,value,status\nq1,d1,relevance,1,ok\nq1,d2,relevance,,refused\n",
        b'qid;docno;label\n"q1";"d1";1\nq1;d2;0\n',
        parquet(query=["q1", "q1"], passage=["d1", "d2"], value=[1, 0]),
    ],
    ("table", "ratings"): [
        b"query,passage,subquestion,value\nq1,d1,s1,5\nq1,d1,s2,0\n",
        parquet(query=["q1"], passage=["d1"], subquestion=["s1"], value=[3.0]),
    ],
    ("table", "load"): [b'passage,text\nd1,"one, two"\nd2,three\n', parquet(passage=["d1"], text=["one"])],
    ("pytrec_eval", "contexts"): [
        b'{"q1": {"d1": 2.5, "d2": 1}, "q2": {}}',
        b'{"a": {"q1": {"d1": 2.5}}, "b": {"q1": {"d2": 1}}}',
    ],
    ("pytrec_eval", "judgments"): [b'{"q1": {"d1": 1, "d2": 0}, "q2": {"d1": 2}}'],
    ("jsonl", "contexts"): [
        JSONL,
        b'{"query": "q1", "passage": "d1", "score": 2.5}\n{"query": "q1", "passage": "d2", "score": 1}\n',
    ],
    ("jsonl", "judgments"): [
        b'{"query": "q1", "passage": "d1", "value": 1}\n{"query": "q1", "passage": "d2", "value": 0}\n',
        b'{"query": "q1", "passage": "d1", "aspect": "abstention", "status": "refused", "raw": "no"}\n',
        b'{"query_id": "q1", "doc_id": "d1", "relevance": 1, "iteration": "0"}\n',
    ],
    ("jsonl", "ratings"): [b'{"query": "q1", "passage": "d1", "subquestion": "s1", "value": 5}\n'],
    ("jsonl", "load"): [JSONL, TEXTS],
    ("beir", "judgments"): [QRELS_TSV],
    ("beir", "load"): [QRELS_TSV, TEXTS],
    ("crux", "ratings"): [b"t-1\n[ True True]\n[5 5]\n['a', 'b']\n[[5, 0], [0, 4]]\n[5 4]\n"],
    ("crux", "load"): [b'{"q1": [[5, 0]]}'],
    ("exam", "contexts"): [EXAM],
    ("exam", "judgments"): [EXAM],
    ("exam", "ratings"): [EXAM],
    ("exam", "load"): [EXAM],
}
ENDINGS = dict.fromkeys(("canard", "cast", "pytrec_eval"), "json") | dict.fromkeys(("conversations", "mtrag"), "jsonl")
CASES = [pytest.param(*case, id="-".join(case)) for case in VALID]


def test_every_reader_is_here() -> None:
    """A new format must be added to this file; ir_datasets reads no files of ours, and ``test_fuzz_logs`` has logs."""
    others = {"ir_datasets", *(f.name for f in FORMATS if f.can("load_rows"))}
    able = {(f.name, what) for f in FORMATS for what in READERS if f.can(what) and f.name not in others}
    assert able == set(VALID)


def crux_folders(content: bytes, folder: Path) -> Iterator[Path]:
    """Folders in which one of the three files is ``content``."""
    usual = {
        "ratings.bm25.json": b'{"q1": [[5, 0]]}',
        "subquestions.json": b'{"q1": ["Who?", "When?"]}',
        "x.request.jsonl": b'{"id": "q1", "request": "Report."}\n',
    }
    for place in usual:
        home = folder / f"crux-{place}"
        home.mkdir(exist_ok=True)
        for name, text in {**usual, "bm25.run": b"q1 Q0 d1 1 2.5 t\n", place: content}.items():
            (home / name).write_bytes(text)
        yield home


def specs(name: str, what: str, content: bytes, folder: Path) -> list[str]:
    """Write ``content`` as a file of that format, in each place where it could stand."""
    ending = "parquet" if content.startswith(b"PAR1") and name == "table" else ENDINGS.get(name, "csv")
    (folder / f"file.{ending}").write_bytes(content)
    if (name, what) == ("crux", "load"):
        return [f"crux:{home}" for home in crux_folders(content, folder)]
    if name != "beir" or what == "ratings":
        return [f"{name}:{folder / f'file.{ending}'}"]
    found: list[str] = []
    for place in ("qrels/test.tsv", "queries.jsonl", "corpus.jsonl") if what == "load" else ("qrels/test.tsv",):
        home = folder / place.replace("/", "-")
        (home / "qrels").mkdir(parents=True, exist_ok=True)
        for part, usual in (("qrels/test.tsv", QRELS_TSV), ("queries.jsonl", TEXTS), ("corpus.jsonl", TEXTS)):
            (home / part).write_bytes(content if part == place else usual)
        found.append(f"beir:{home}")
    return found


def check(name: str, what: str, content: bytes, folder: Path) -> None:
    for spec in specs(name, what, content, folder):
        for skip in (False, True):
            try:
                result = READERS[what](spec, skip_bad_lines=skip)
            except RagworthError as error:
                event("error")
                assert 0 < len(str(error)) < 4000
                assert len(str(error).splitlines()) <= 24
                continue
            except (KeyboardInterrupt, SystemExit):
                raise
            except BaseException as error:  # a panic of Polars is no Exception
                message = f"{type(error).__name__} from {what} of {name}, skip_bad_lines={skip}: {content!r}"
                raise AssertionError(message) from error
            event("table")
            assert isinstance(result, KINDS[what])


@pytest.mark.parametrize(("name", "what"), CASES)
def test_valid_files_are_valid(name: str, what: str, scratch: Path) -> None:
    """Else mutating them would tell nothing."""
    for content in VALID[name, what]:
        spec = specs(name, what, content, scratch)[-1 if content == TEXTS else 0]
        assert isinstance(READERS[what](spec), KINDS[what])


ODD = [bytes([sign]) for sign in b"\n\r\t ,;\"\\\0\xff\xc3#'[}"] + [b"\xef\xbb\xbf"]
ODD += b'\\ud800 null NaN Infinity true {} [] "" q1 d1 \x1f\x8b \x28\xb5\x2f\xfd'.split()
NUMBERS = b'1e999 -1 0 0.5 18446744073709551616 4294967296 nan -inf 1_0 null "1"'.split()
NUMBERS += [b"", b"1" + b"0" * 400, b"1" * 5000]


@st.composite
def mutated(draw: st.DrawFn, name: str, what: str) -> bytes:
    """A valid file after a few accidents."""
    content = draw(st.sampled_from(VALID[name, what]))
    for _ in range(draw(st.integers(1, 4))):
        at = draw(st.integers(0, len(content)))
        end = min(len(content), at + draw(st.integers(1, 12)))
        match draw(st.sampled_from(["flip", "delete", "insert", "truncate", "repeat", "number", "number"])):
            case "flip":
                content = content[:at] + bytes(b ^ draw(st.integers(1, 255)) for b in content[at:end]) + content[end:]
            case "delete":
                content = content[:at] + content[end:]
            case "insert":
                content = content[:at] + draw(st.sampled_from(ODD) | st.binary(max_size=4)) + content[at:]
            case "truncate":
                content = content[:at]
            case "repeat":
                content = content[:end] + content[at:]
            case "number":
                numbers = list(re.finditer(rb"-?[0-9][0-9.e-]*", content))
                if numbers:
                    hit = draw(st.sampled_from(numbers))
                    content = content[: hit.start()] + draw(st.sampled_from(NUMBERS)) + content[hit.end() :]
    return draw(
        st.sampled_from([content, content, content, content, gzip.compress(content, mtime=0), zstd.compress(content)])
    )


@pytest.mark.parametrize(("name", "what"), CASES)
@examples(100)
@given(data=st.data())
def test_mutated_files(name: str, what: str, data: st.DataObject, scratch: Path) -> None:
    check(name, what, data.draw(mutated(name, what)), scratch)
