"""Workspaces of questions with passages of their own: RGB, HotpotQA, 2WikiMultihopQA, MuSiQue.

Each question's run begins with its own passages, in the order of BM25, and goes on with passages of other questions,
as BM25 finds them and, where it finds too few, at random, up to `DEPTH`: studies draw distractors from it. A neighbour
that holds an accepted answer is passed over, since nobody said whether it answers.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain, islice, zip_longest
from pathlib import Path
from typing import NamedTuple

from benchmarks.files import read_lines, write_lines

from ragworth.data.collection import Collection, text_id
from ragworth.retrieval import StepContext, retrieve
from ragworth.text_match.overlap import containment
from ragworth.workspace.config import WORKSPACE_FILE

DEPTH = 30
"""Passages of a question's run."""

BM25 = 'bm25(stopwords="english", stemmer="english")'

TOML = """\
title = "{title}"
k = 5

[collection]
queries = "queries.jsonl"
passages = "passages.jsonl"
answers = "queries.jsonl"
qrels = "qrels.txt" # {labels}

[systems]
found = {{ run = "found.run" }} # the question's own passages, then neighbours that hold no accepted answer

[model]
use = "embedded"

[judgments]
abstention = true

[answers]
length = 24

[grades]
deterministic = true
"""


class Question(NamedTuple):
    """One question and the passages that came with it."""

    id: str
    text: str
    accepted: tuple[str, ...]
    relevant: tuple[str, ...]
    others: tuple[str, ...]


def rgb(data: Path, folder: Path) -> None:
    """100 questions about facts; supporting passages are relevant, the irrelevant ones are not.

    An irrelevant passage that holds the answer all the same is left out.
    """
    made = []
    for row in read_lines(data / "rgb" / "en_fact.json.gz"):
        answer = row["answer"]
        accepted = tuple(dict.fromkeys([answer] if isinstance(answer, str) else chain.from_iterable(answer)))
        relevant = tuple(dict.fromkeys(row["positive"]))
        others = (text for text in row["negative"] if text not in relevant and not containment(text, accepted))
        name = f"rgb-{row['id']:03}"
        made.append(Question(name, row["query"], accepted, relevant, tuple(dict.fromkeys(others))))
    write(folder, "RGB: 100 questions about facts", made, "supporting passages 1, irrelevant ones 0")


def multihop(data: Path, folder: Path, names: Iterable[str] = ("hotpot", "wikihop", "musique")) -> None:
    """Questions that need several paragraphs, of the three collections in turn; supporting paragraphs are relevant.

    36 of the 200 questions of 2WikiMultihopQA come without paragraphs and are left out.
    """
    sets = [[each for each in _hops(data, name) if each.relevant] for name in names]
    made = [each for row in zip_longest(*sets) for each in row if each is not None]
    write(folder, "Multi-hop questions: " + ", ".join(names), made, "supporting paragraphs 1, the question's others 0")


def _hops(data: Path, name: str) -> Iterator[Question]:
    for number, row in enumerate(read_lines(data / "multihop" / f"{name}.json.gz")):
        if "paragraphs" in row:
            texts = [
                (f"{each['title']}: {each['paragraph_text']}", each["is_supporting"]) for each in row["paragraphs"]
            ]
        else:
            support = {title for title, _ in row["supporting_facts"]}
            texts = [
                (f"{title}: {' '.join(sentence.strip() for sentence in sentences)}", title in support)
                for title, sentences in row.get("context") or []
            ]
        accepted = tuple(dict.fromkeys([row["answer"], *row.get("answer_aliases", [])]))
        yield Question(
            f"{name}-{number:03}",
            row["question"],
            accepted,
            tuple(dict.fromkeys(text for text, good in texts if good)),
            tuple(dict.fromkeys(text for text, good in texts if not good)),
        )


def write(folder: Path, title: str, questions: list[Question], labels: str) -> None:
    """Texts, labels, the run and ``ragworth.toml``."""
    passages = {text_id(text): text for each in questions for text in (*each.relevant, *each.others)}
    write_lines(
        folder / "queries.jsonl", ({"_id": q.id, "text": q.text, "answers": list(q.accepted)} for q in questions)
    )
    write_lines(folder / "passages.jsonl", ({"_id": name, "text": text} for name, text in passages.items()))
    rows = [
        (each.id, text_id(text), int(good))
        for each in questions
        for good, texts in ((True, each.relevant), (False, each.others))
        for text in texts
    ]
    (folder / "qrels.txt").write_text("".join(f"{q} 0 {p} {label}\n" for q, p, label in rows), encoding="utf-8")
    found = runs(questions, passages)
    (folder / "found.run").write_text(
        "".join(
            f"{query} Q0 {passage} {rank} {1 / rank:.6f} found\n"
            for query, shown in found.items()
            for rank, passage in enumerate(shown, 1)
        ),
        encoding="utf-8",
    )
    (folder / WORKSPACE_FILE).write_text(TOML.format(title=title, labels=labels), encoding="utf-8")


def runs(questions: list[Question], passages: dict[str, str]) -> dict[str, list[str]]:
    """The passages of each question, its own ones first."""
    collection = Collection.of(
        queries=[{"query": each.id, "text": each.text} for each in questions],
        passages=[{"passage": name, "text": text} for name, text in passages.items()],
    )
    near: dict[str, list[str]] = {each.id: [] for each in questions}
    systems = {"bm25": f"{BM25} % 300", "random": "random % 300"}
    ranked = retrieve(systems, StepContext.of(collection)).frame.sort("system", "rank")
    for query, passage in ranked.select("query", "passage").iter_rows():
        near[query].append(passage)
    made = {}
    for each in questions:
        own = {text_id(text) for text in (*each.relevant, *each.others)}
        first = sorted(own, key=lambda name: (near[each.id].index(name) if name in near[each.id] else 999, name))
        near_it = dict.fromkeys(near[each.id])
        rest = (name for name in near_it if name not in own and not _holds(passages[name], each.accepted))
        made[each.id] = [*first, *islice(rest, DEPTH)][:DEPTH]
    return made


def _holds(text: str, accepted: tuple[str, ...]) -> bool:
    """Whether a passage has an accepted answer in it; yes and no stand anywhere, and say nothing."""
    wanted = [answer for answer in accepted if answer.lower() not in ("yes", "no")]
    return bool(wanted) and containment(text, wanted) > 0
