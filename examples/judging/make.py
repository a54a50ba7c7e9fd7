"""Writes this folder's files: six questions of an invented town, what two systems show for each, and what is known.

Invented, so that no model knows the answers by heart. Each question has a passage that answers it, one about the right
thing that does not (right entity, wrong attribute), one that answers it for another thing (right attribute, wrong
entity), and one that has nothing to do with it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

FOLDER = Path(__file__).parent

# question, accepted answers, supporting, right entity, right attribute, unrelated
QUESTIONS = [
    (
        "Who built the Larkmoor water mill?",
        ["Edda Thornquist", "Thornquist"],
        "The water mill at Larkmoor is the work of Edda Thornquist, a millwright from Tennby, who finished it in 1823.",
        "The Larkmoor water mill grinds rye and spelt. Its wheel has twenty-four paddles and turns slowly.",
        "The windmill on Gallow Hill was built in 1851 by the brothers Aske, who also made its sails.",
        "The lending library opens at nine on weekdays and at ten on Saturdays; it is closed in August.",
    ),
    (
        "In which year did the Larkmoor ferry stop running?",
        ["1964"],
        "After the bridge was opened the ferry had few passengers. Its last crossing at Larkmoor was in October 1964.",
        "The Larkmoor ferry was a flat boat on a chain. It carried two carts or forty sheep and was painted green.",
        "The tram between Tennby and the harbour stopped running in 1938, when the rails were sold.",
        "Honey from the heath is dark and bitter, and most of it is eaten with cheese.",
    ),
    (
        "How many bells hang in the tower of Saint Wenna?",
        ["seven", "7 bells"],
        "Seven bells hang in the tower of Saint Wenna; the heaviest, called Old Tom, weighs two tonnes.",
        "The tower of Saint Wenna leans to the east by half a degree, which engineers have watched since 1902.",
        "The chapel in Tennby has three bells, all cast in the same week.",
        "Buses to the coast leave from the market square every forty minutes.",
    ),
    (
        "Which metal was mined at Cold Edge?",
        ["tin"],
        "Cold Edge was a tin mine. It gave four hundred tonnes in its best year and was drowned by a flood in 1879.",
        "The shaft at Cold Edge is ninety metres deep. A fence keeps walkers away from its rim.",
        "The pits at Harrow Fell were worked for lead and a little silver until the price fell.",
        "The swimming club meets at the weir on the first Sunday of every month.",
    ),
    (
        "Who is the head gardener of Ashby Park?",
        ["Ruben Mallow"],
        "Since last spring the garden staff of Ashby Park have been led by Ruben Mallow, a pear grower.",
        "Ashby Park has eleven ponds and a maze of yew. The roses are at their best in the third week of June.",
        "At Tennby Hall the head gardener is Iris Venn, who has planted a wood of wild pears.",
        "The town council met twice in March and agreed on nothing.",
    ),
    (
        "How long is the footpath from Larkmoor to the sea?",
        ["14 kilometres", "fourteen kilometres", "14 km"],
        "Walkers reach the sea from Larkmoor by a footpath of fourteen kilometres, most of it along the river.",
        "The footpath from Larkmoor to the sea is closed in February, when the meadows are under water.",
        "The footpath over Harrow Fell is nine kilometres long and steep at both ends.",
        "The bakery on Mill Lane sells its last loaves at half price after four.",
    ),
]
ORDERS = {"plain": (2, 0, 1), "careful": (0, 3, 1)}
"""What the systems show: 0 the supporting passage, 1 right entity, 2 right attribute, 3 unrelated."""

REQUEST = "Write a short report on getting to Larkmoor and around it."
SUBQUESTIONS = [
    "How can one get from Larkmoor to the sea on foot?",
    "When is the footpath to the sea closed?",
    "From where do buses to the coast leave?",
    "When did the ferry stop running?",
]

RATED = {("1", "p6a"): 5, ("2", "p6b"): 5, ("3", "p3d"): 4, ("4", "p2a"): 5, ("1", "p6b"): 1, ("4", "p6b"): 0}
"""How well passages answer sub-questions, by hand; all others 0."""


def main() -> None:
    lines = []
    for system, order in ORDERS.items():
        for number, (question, answers, *texts) in enumerate(QUESTIONS, 1):
            shown = [{"doc_id": f"p{number}{'abcd'[place]}", "text": texts[place]} for place in order]
            lines.append(
                {
                    "system": system,
                    "query_id": f"q{number}",
                    "query": question,
                    "answers": answers,
                    "retrieved_context": shown,
                }
            )
    _write("contexts.jsonl", lines)
    passages = {
        f"p{n}{'abcd'[i]}": text for n, (_, _, *texts) in enumerate(QUESTIONS, 1) for i, text in enumerate(texts)
    }
    report = ["p6a", "p6b", "p3d", "p2a", "p1d"]
    shown = [{"doc_id": name, "text": passages[name]} for name in report]
    _write("report.jsonl", [{"system": "plain", "query_id": "r1", "query": REQUEST, "retrieved_context": shown}])
    _write("subquestions.jsonl", [{"query_id": "r1", "subquestions": SUBQUESTIONS}])
    qrels = [f"q{n} 0 p{n}{place} {int(place == 'a')}\n" for n in range(1, len(QUESTIONS) + 1) for place in "abcd"]
    (FOLDER / "qrels.txt").write_text("".join(qrels), encoding="utf-8")
    names = [str(number) for number in range(1, len(SUBQUESTIONS) + 1)]
    rated = [f"r1 {name} {passage} {RATED.get((name, passage), 0)}\n" for passage in report for name in names]
    (FOLDER / "ratings.txt").write_text("".join(rated), encoding="utf-8")


def _write(name: str, items: Sequence[Mapping[str, object]]) -> None:
    text = "".join(json.dumps(item, ensure_ascii=False) + "\n" for item in items)
    (FOLDER / name).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
