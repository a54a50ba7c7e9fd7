"""Results of evaluation tools, answers of services and hits of vector stores, in the shapes that these document."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ragworth.errors import FormatError
from ragworth.formats import load
from ragworth.formats.contract import LoadedCollection
from ragworth.formats.detection import detect

Save = Callable[[str, str | bytes], Path]
MILL, TOWN = "Who built the mill?", "Where is the mill?"
BUILT, LIES = "Ann built the mill in 1820.", "The mill is in Arden."

PROMPTFOO = {
    "promptIdx": 0,
    "testIdx": 0,
    "provider": {"id": "openai:gpt-4o", "label": "large"},
    "prompt": {"raw": f"Answer: {MILL}", "label": "Answer: {{question}}"},
    "vars": {"question": MILL, "context": [BUILT, LIES]},
    "testCase": {"vars": {"question": MILL}, "assert": [{"type": "icontains", "value": "Ann"}]},
    "response": {"output": "Ann did."},
    "failureReason": 0,
    "success": True,
    "score": 1,
    "namedScores": {"Hallucination": 1},
    "gradingResult": {
        "pass": True,
        "score": 1,
        "componentResults": [{"pass": True, "score": 1, "assertion": {"type": "icontains", "value": "Ann"}}],
    },
}
SAMPLES: dict[str, dict[str, Any]] = {"promptfoo": PROMPTFOO}
"""A row of each format, for tests with changed values."""


def read(save: Save, rows: Any, name: str = "log.json") -> LoadedCollection:
    text = rows if isinstance(rows, str) else json.dumps(rows)
    return load(save(name, text))


def shown(loaded: LoadedCollection) -> dict[tuple[str, str], list[tuple[str, float | None]]]:
    """Texts and scores of passages in the order shown, by system and question."""
    assert loaded.contexts is not None
    questions, texts = dict(loaded.collection.queries.iter_rows()), dict(loaded.collection.passages.iter_rows())
    found: dict[tuple[str, str], list[tuple[str, float | None]]] = {}
    rows = loaded.contexts.frame.select("system", "query", "passage", "score").iter_rows()
    for system, query, passage, score in rows:
        found.setdefault((system, questions[query]), []).append((texts.get(passage, passage), score))
    return found


def answers(loaded: LoadedCollection) -> list[tuple[str, str, int, str | None, str]]:
    assert loaded.answers is not None
    questions = dict(loaded.collection.queries.iter_rows())
    rows = loaded.answers.frame.select("system", "query", "repeat", "text", "status").iter_rows()
    return [(system, questions[query], *rest) for system, query, *rest in rows]


def grades(loaded: LoadedCollection, system: str = "log") -> dict[str, list[float | None]]:
    """Values by aspect, in the order of the questions."""
    assert loaded.outcomes is not None
    found: dict[str, list[float | None]] = {}
    rows = {(row["system"], row["query"], row["aspect"]): row["value"] for row in loaded.outcomes.frame.to_dicts()}
    for query in loaded.collection.queries["query"]:
        for aspect in loaded.outcomes.distinct("aspect"):
            if (system, query, aspect) in rows:
                found.setdefault(aspect, []).append(rows[system, query, aspect])
    return found


def accepted(loaded: LoadedCollection) -> list[str]:
    return loaded.collection.answers["text"].to_list()


def notes(loaded: LoadedCollection) -> str:
    source = loaded.contexts or loaded.answers or loaded.collection
    return "\n".join(source.notes)


@pytest.mark.parametrize("name", SAMPLES)
def test_a_file_is_recognised(name: str, save: Save) -> None:
    for ending, text in (("json", json.dumps([SAMPLES[name]], indent=1)), ("jsonl", json.dumps(SAMPLES[name]) + "\n")):
        assert detect(save(f"log.{ending}", text)).name == name


def test_providers_errors_and_repeats_of_promptfoo(save: Save) -> None:
    """A rejected answer is wrong, and has an error, too; a request that failed has no answer and no grade."""
    small = {"provider": {"id": "small"}, "promptIdx": 1}
    wrong = {"response": {"output": "Bob"}, "success": False, "score": 0, "failureReason": 1, "error": "Expected Ann"}
    failed = {
        "response": {"error": "timed out"},
        "success": False,
        "score": 0,
        "failureReason": 2,
        "error": "timed out",
    }
    results = [PROMPTFOO, PROMPTFOO | small | wrong, PROMPTFOO | failed, PROMPTFOO | small | {"testIdx": 1}]
    for document in (
        {"evalId": "e", "results": {"version": 3, "results": results}},
        {"version": 3, "results": results},
    ):
        loaded = read(save, document)
        assert answers(loaded) == [
            ("large", MILL, 0, "Ann did.", "ok"),
            ("small", MILL, 0, "Bob", "ok"),
            ("large", MILL, 1, None, "error"),
            ("small", MILL, 1, "Ann did.", "ok"),
        ]
        assert shown(loaded) == {(name, MILL): [(BUILT, None), (LIES, None)] for name in ("large", "small")}
        assert accepted(loaded) == ["Ann"]
        assert grades(loaded, "large") == {
            "pass": [1.0],
            "score": [1.0],
            "icontains": [1.0],
            "higher_Hallucination": [1.0],
        }
        assert grades(loaded, "small")["pass"] == [pytest.approx(0.5)]


def test_prompts_and_variables_of_promptfoo(save: Save) -> None:
    """Prompts are systems; the same question with other variables is another question; no assertion, no grade."""
    plain: dict[str, Any] = {"testCase": {}, "gradingResult": None, "provider": "small", "namedScores": {}}
    other = {"prompt": {"raw": "…", "label": "In one word: " + "please, " * 9}}
    vague = {"vars": {"question": MILL, "context": [LIES]}}
    loaded = read(save, [PROMPTFOO | plain, PROMPTFOO | plain | other, PROMPTFOO | plain | vague])
    assert [(system, repeat) for system, _, repeat, _, _ in answers(loaded)] == [
        ("small, Answer: {{question}}", 0),
        ("small, prompt 2", 0),
        ("small, Answer: {{question}}", 0),
    ]
    assert loaded.outcomes is None
    assert "1 question occurs with different variables" in notes(loaded)
    assert "prompt 2 is 'In one word" in notes(loaded)


@pytest.mark.parametrize(
    ("assertions", "references"),
    [
        ([{"type": "equals", "value": "{{who}}"}, {"type": "not-equals", "value": "Bob"}], ["Ann"]),
        ([{"type": "contains", "value": "Ann"}, {"type": "contains", "value": "1820"}], []),
        ([{"type": "icontains-any", "value": ["Ann", "Anne"]}], ["Ann", "Anne"]),
        ([{"type": "factuality", "value": "file://a.txt"}, {"type": "javascript", "value": "true"}], []),
    ],
)
def test_references_in_assertions_of_promptfoo(assertions: Any, references: list[str], save: Save) -> None:
    row = PROMPTFOO | {"vars": {"question": MILL, "who": "Ann"}, "testCase": {"assert": assertions}}
    row["response"] = {"output": {"answer": "Ann", "context": BUILT}}
    loaded = read(save, [row])
    assert accepted(loaded) == references
    assert shown(loaded) == {("log", MILL): [(BUILT, None)]}


def test_variables_of_promptfoo_of_which_any_may_be_the_question(save: Save) -> None:
    row = PROMPTFOO | {"vars": {"topic": MILL, "tone": "formal"}}
    with pytest.raises(FormatError, match=r"no question in 'vars'; there are topic, tone; .*--map question=vars.NAME"):
        read(save, [row])
    assert load(save("log.json", json.dumps([row])), columns={"question": "vars.topic"}).answers is not None


def test_a_table_of_promptfoo(save: Save) -> None:
    head = "context,question,[openai:gpt-4o] Answer,Status,Score,Named Scores,Metric: cost,Grader Reason,Comment\n"
    passed = f'"[""{BUILT}""]",{MILL},Ann,PASS,1.00,"{{""cost"":0.5}}",0.50,ok,\n'
    rows = f"{passed},{TOWN},,ERROR,0.00,,,timeout,\n,Why?,Bob,FAIL,0.00,,,no,\n"
    loaded = read(save, head + rows, "log.csv")
    assert shown(loaded) == {("log", MILL): [(BUILT, None)]}
    assert answers(loaded)[:2] == [("log", MILL, 0, "Ann", "ok"), ("log", TOWN, 0, None, "error")]
    assert grades(loaded) == {"pass": [1.0, None, 0.0], "score": [1.0, None, 0.0], "higher_cost": [0.5, None, None]}
