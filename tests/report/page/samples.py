"""Results made from code, to build reports of: five systems on an invented world, with and without sub-questions."""

from __future__ import annotations

import random
from functools import cache
from typing import Any, NamedTuple

import polars as pl

import ragworth
from ragworth.data import Answers, Contexts, Judgments, Outcomes, Ratings, Scores
from ragworth.llm import prompts
from ragworth.results import Results

NAMES = ("Velmora", "Harrow", "Istrel", "Cald", "Tessaly", "Ombrin", "Quennel", "Dorrick", "Saffra", "Lunt", "Ashby")
THINGS = ("lighthouse", "observatory", "bridge", "mill", "archive", "canal", "theatre", "foundry")
PEOPLE = ("Ina Tarrow", "Joss Belwether", "Mirel Okander", "Petra Vaun", "Olin Sarke", "Ada Fenmoor", "Tam Ilgrave")
TOWNS = ("Port Selby", "Nether Quay", "Old Brannock", "Sallow Ford", "Hexley", "Rune Hollow")
FILLER = (
    "The building is open to visitors from spring to autumn, and a small museum shows how it was raised.",
    "Its walls are of a pale limestone that was brought up the river on barges, as the ledgers still record.",
    "After the great storm the roof was covered anew with slate, which the parish paid for in four instalments.",
    "Local historians disagree about the first plans, of which two sheets and a letter to the surveyor survive.",
    "A restoration by the county council brought the doors back and moved the car park behind the trees.",
    "Every second year a fair is held on the meadow beside it, with a race of boats and a prize for the bell.",
)
ASPECTS = (
    "When was it founded?",
    "Who paid for it?",
    "What is it made of?",
    "How was it damaged?",
    "Who runs it today?",
    "What is held there?",
    "How does one get there?",
    "What do historians dispute?",
)
ORDERS: dict[str, dict[str, float]] = {
    "BM25": {"near": 0.2, "relevant": 0.3, "old": 0.4, "off": 1.5},
    "BM25 + rerank": {"relevant": 0.0, "near": 0.8, "old": 0.7, "off": 1.5},
    "oracle": {"relevant": -9.0, "off": 0.0, "near": 5.0, "old": 6.0},
    "adversary": {"old": -9.0, "near": -8.0, "off": 0.0, "relevant": 9.0},
    "random": {},
}
"""What each system puts first: kinds of passages, the lower the earlier."""

PIPELINES = {
    "BM25": "bm25(k1=0.9, b=0.4) % 5",
    "BM25 + rerank": 'bm25(k1=0.9, b=0.4) % 50 >> listwise(window=20, step=10, model="embedded") >> mmr(0.5) % 5',
    "oracle": "bm25 >> oracle % 5",
    "adversary": 'run("runs/adversary-of-the-first-hundred-passages.trec")',
}
NOTED = {"BM25 + rerank": ["listwise: 17 of 18 windows could not be judged and stay as they were (unparsable 17)"]}
"""Of one system it is not known what it is; of one something was noticed."""

DECLINES = {"relevant": (0.02, 0.45), "near": (0.02, 0.55), "old": (0.01, 0.3), "off": (0.75, 0.99)}
"""Between which probabilities the model declines to answer from each kind."""

MODEL = "embedded:smollm2-135m@4f1c0ad2b7e9"
USED = ("abstention", "relevance", "answer", "grade", "rating")


def source(*names: str, how: str = "") -> str:
    """Where a value comes from, as judgments say it."""
    return " · ".join(
        [MODEL, *(f"{name}@{prompts.load_prompt(name).version}" for name in names), *([how] if how else [])]
    )


def prompt_texts() -> dict[str, Any]:
    """The prompts as a manifest has them."""
    loaded = [prompts.load_prompt(name) for name in USED]
    return {
        each.name: {"version": each.version, "messages": [[message.role, message.text] for message in each.messages]}
        for each in loaded
    }


def manifest(title: str) -> dict[str, Any]:
    """Where results come from."""
    counts = {"calls": 612, "stored": 120, "prompt_tokens": 113_220, "new_tokens": 612, "cost": 0.0, "seconds": 471.2}
    return {
        "title": title,
        "name": "samples",
        "created": "2026-11-15T12:00:00Z",
        "command": "ragworth evaluate",
        "versions": {"ragworth": ragworth.__version__, "polars": pl.__version__, "python": "3.11.7"},
        "files": {"passages.jsonl": "9f" * 32, "queries.jsonl": "01" * 32},
        "seeds": {"bootstrap": 0, "sampling": 0},
        "models": [{"name": "smollm2-135m", "backend": "embedded", "revision": "4f1c0ad2b7e9", "context": 2048}],
        "prompts": prompt_texts(),
        "systems": PIPELINES,
        "settings": {"metrics": ["UDCG@5", "nDCG@5"], "k": 5, "budget": {"calls": 5000}},
        "stages": [
            {"name": "retrieve", "status": "done", "seconds": 0.4, "notes": [], "noted": NOTED},
            {"name": "abstention", "status": "done", **counts},
        ],
    }


class World(NamedTuple):
    """Questions, passages and accepted answers; for each query the passages with their kinds."""

    questions: dict[str, str]
    passages: dict[str, str]
    accepted: dict[str, str]
    kinds: dict[str, dict[str, str]]


def world(rng: random.Random, queries: int) -> World:
    made = World({}, {}, {}, {})
    for number in range(1, queries + 1):
        query, name, thing = f"q{number:03d}", f"{rng.choice(NAMES)} {rng.choice(NAMES)}", rng.choice(THINGS)
        person, town, year = rng.choice(PEOPLE), rng.choice(TOWNS), rng.randint(1702, 1961)
        other, wrong = rng.choice([each for each in PEOPLE if each != person]), f"{rng.choice(NAMES)} Grange"
        facts = {
            "relevant-a": f"The {name} {thing} near {town} was built in {year} by {person}, who had come to survey.",
            "relevant-b": f"Among the works of {person} are a pier and, begun in {year - 2}, the {thing} of {name}.",
            "near-a": f"The {name} {thing} near {town} was opened in {year} after {rng.randint(3, 14)} years.",
            "near-b": f"The {wrong} {thing}, often mistaken for it, was built in {year + 7} by {other}.",
            "old-a": f"An early guide names {other} as builder of the {name} {thing}, which records contradict.",
            "off-a": f"The harvest feast of {rng.choice(TOWNS)} has been held since {year - 90} and lasts three days.",
            "off-b": f"Ferries to {rng.choice(TOWNS)} run hourly; the crossing takes {rng.randint(9, 80)} minutes.",
        }
        made.questions[query] = f"Who built the {name} {thing} near {town}?"
        made.accepted[query] = person
        made.kinds[query] = {f"{query}-{fact}": fact.split("-")[0] for fact in facts}
        for fact, words in facts.items():
            filler = rng.sample(FILLER, 4)
            first = [words] if fact == "relevant-a" else [filler[3], words]
            made.passages[f"{query}-{fact}"] = " ".join([*first, *filler[:3]])
    return made


def ranked(kinds: dict[str, dict[str, str]], k: int, rng: random.Random) -> list[dict[str, Any]]:
    rows = []
    for system, weights in ORDERS.items():
        for query, many in kinds.items():
            placed = sorted(many, key=lambda passage: weights.get(many[passage], 0.0) + rng.random())[:k]
            rows += [
                {"system": system, "query": query, "passage": passage, "rank": rank, "score": round(20 - 1.7 * rank, 2)}
                for rank, passage in enumerate(placed, 1)
            ]
    return rows


def judged(made: World, rng: random.Random) -> tuple[list[dict[str, Any]], pl.DataFrame]:
    """Labels, and what came of asking the model for abstention; one in a hundred is timed out."""
    labels, asked = [], []
    for query, passage, kind in ((q, p, kind) for q, many in made.kinds.items() for p, kind in many.items()):
        known = {"query": query, "passage": passage}
        label = {"aspect": "relevance", "value": float(kind == "relevant"), "status": "ok", "source": "given"}
        labels.append(known | label)
        p = round(rng.uniform(*DECLINES[kind]), 4)
        row = {"aspect": "abstention", "value": p, "status": "ok", "source": source("abstention", how="first-token")}
        if rng.random() < 0.01:
            row |= {"value": None, "status": "timed-out", "reason": "no answer within 60 s"}
        asked.append({**known, **row, "p": p, "cut": 0})
    schema: dict[str, type[pl.DataType]] = {
        **Judgments.schema,
        "reason": pl.String,
        "raw": pl.String,
        "p": pl.Float64,
        "cut": pl.Int64,
    }
    return labels, pl.DataFrame(asked, schema=schema)


def answered(
    rows: list[dict[str, Any]], made: World, said: pl.DataFrame, rng: random.Random
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """What a model might answer, and grades that follow from what it is shown."""
    p = {(query, passage): value for query, passage, value in said.select("query", "passage", "p").iter_rows()}
    shown: dict[tuple[str, str], list[str]] = {}
    for row in rows:
        shown.setdefault((row["system"], row["query"]), []).append(row["passage"])
    answers, graded = [], []
    for (system, query), passages in shown.items():
        pull = {passage: 1 - p[query, passage] + rng.uniform(-0.25, 0.25) for passage in passages}
        best = max(pull, key=lambda passage: pull[passage])
        right = made.accepted[query]
        text, label, value = rng.choice([each for each in PEOPLE if each != right]), "wrong", -1.0
        if pull[best] < 0.6:
            text, label, value = "NO-RESPONSE", "abstained", 0.0
        elif made.kinds[query][best] == "relevant":
            text, label, value = right, "correct", 1.0
        known = {"system": system, "query": query, "status": "ok"}
        facts = {"finish": "stop", "shown": passages, "cut": 0, "prompt_tokens": 300 + rng.randint(0, 90)}
        answers.append({**known, "repeat": 0, "text": text, "tokens": 4, "source": source("answer"), **facts})
        why = f"compared with {right!r}"
        grade = {"aspect": "grade", "value": value, "source": f"deterministic ← {source('answer')}", "label": label}
        graded.append({**known, **grade, "why": why})
    return pl.DataFrame(answers), pl.DataFrame(graded)


class Reports(NamedTuple):
    """Requests for long answers, with sub-questions and ratings."""

    questions: dict[str, str]
    passages: dict[str, str]
    subquestions: list[dict[str, str]]
    contexts: list[dict[str, Any]]
    said: pl.DataFrame


def reports(rng: random.Random, number: int, k: int) -> Reports:
    questions, passages, names, rows, rated = {}, {}, [], [], []
    for query in (f"r{i + 1}" for i in range(number)):
        name = f"{rng.choice(NAMES)} {rng.choice(THINGS)}"
        questions[query] = f"Write a report on the {name}: how it came to be, who keeps it, and what is found there."
        for j, text in enumerate(ASPECTS):
            names.append({"query": query, "subquestion": f"{query}.{j + 1}", "text": text.replace("it", f"the {name}")})
        ids = [f"{query}-p{n + 1}" for n in range(12)]
        for passage in ids:
            passages[passage] = f"Of the {name}: " + " ".join(rng.sample(FILLER, rng.randint(2, 5)))
            good = set(rng.sample(range(len(ASPECTS) - 1), rng.choice((0, 1, 2, 3))))
            for j in range(len(ASPECTS)):
                value = float(rng.choice((3, 4, 5)) if j in good else rng.choice((0, 0, 0, 1, 2)))
                known = {"query": query, "passage": passage, "subquestion": f"{query}.{j + 1}", "status": "ok"}
                rated.append({**known, "value": value, "source": source("rating"), "raw": f"{value:.0f}"})
        for system in ORDERS:
            known = {"system": system, "query": query}
            order = enumerate(rng.sample(ids, k), 1)
            rows += [{**known, "passage": passage, "rank": rank, "score": 9.0 - rank} for rank, passage in order]
    return Reports(questions, passages, names, rows, pl.DataFrame(rated))


@cache
def realistic(queries: int = 40, requests: int = 6, k: int = 5, seed: int = 7) -> Results:
    """Five systems on questions with one accepted answer, and on requests with sub-questions."""
    rng = random.Random(seed)
    made = world(rng, queries)
    rows = ranked(made.kinds, k, rng)
    labels, asked = judged(made, rng)
    answers, graded = answered(rows, made, asked, rng)
    more = reports(rng, requests, k)
    contexts = Contexts(sorted([*rows, *more.contexts], key=lambda row: list(ORDERS).index(row["system"])))
    plain = asked.select(list(Judgments.schema))
    judgments = Judgments(pl.concat([pl.DataFrame(labels).select(list(Judgments.schema)), plain]))
    ratings = Ratings(more.said.select(list(Ratings.schema)))
    questions, passages = made.questions | more.questions, made.passages | more.passages
    collection = ragworth.Collection.of(
        queries={"query": list(questions), "text": list(questions.values())},
        passages={"passage": list(passages), "text": list(passages.values())},
        answers={"query": list(made.accepted), "text": list(made.accepted.values())},
        subquestions=more.subquestions,
    )
    scores = [
        ragworth.score(contexts, judgments, ["UDCG@5", "nDCG@5", "P@5", "RR", "UDCG(gamma=0)@5"]),
        ragworth.score(contexts, None, ["Cov@5", "alpha_nDCG@5", "Den@5"], ratings=ratings, tokens=collection.tokens()),
    ]
    return Results(
        collection=collection,
        contexts=contexts,
        judgments=judgments,
        ratings=ratings,
        answers=Answers(answers),
        outcomes=Outcomes(graded.select(list(Outcomes.schema))),
        scores=Scores(pl.concat([each.frame for each in scores])),
        said={"abstention": asked, "answers": answers, "grade": graded, "ratings": more.said},
        manifest=manifest("Five ways to find who built what"),
    )
