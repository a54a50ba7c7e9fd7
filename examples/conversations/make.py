"""Write the conversations of this folder: three people ask about an invented valley, its ferry and its dairy."""

from __future__ import annotations

import json
from pathlib import Path

FOLDER = Path(__file__).parent

PASSAGES = {
    "ferry-summer": "The Aldermere ferry crosses the lake every half hour from May to September.",
    "ferry-winter": "In winter the Aldermere ferry crosses the lake twice a day, at eight and at four.",
    "ferry-price": "A single crossing on the Aldermere ferry costs three crowns; a bicycle is carried free.",
    "ferry-dogs": "Dogs travel on the Aldermere ferry on a lead and stay on the open deck.",
    "ferry-history": "The Aldermere ferry has run since 1911, when the road around the lake was washed away.",
    "bus-winter": "In winter the valley bus runs every hour and costs two crowns.",
    "bus-dogs": "The valley bus takes dogs of any size; they need a ticket of one crown.",
    "tower-height": "The beacon tower of Harrow Point is forty-one metres high.",
    "tower-builder": "The beacon tower of Harrow Point was built by the engineer Ilsa Marn.",
    "tower-year": "Work on the beacon tower of Harrow Point ended in 1876 after nine years.",
    "tower-visit": "The beacon tower of Harrow Point opens on Sundays; two hundred and six steps lead to the lamp.",
    "marn-bridge": "Ilsa Marn also designed the iron bridge at Dunmoor, which fell in the storm of 1889.",
    "mill-height": "The old mill at Dunmoor is nineteen metres high and has six floors.",
    "cheese-milk": "Orrin cheese is made from the milk of grey sheep that graze above the tree line.",
    "cheese-age": "Orrin cheese ripens for seven months in the caves below the dairy.",
    "cheese-festival": "The dairy opens the first Orrin cheese of the year at the festival in October.",
    "butter-milk": "Valley butter is churned from cow's milk and salted twice.",
    "butter-age": "Valley butter keeps for three weeks in a cold cellar.",
}

# Question, rewrite, answer, the assistant's reply, relevant passages.
CONVERSATIONS = {
    "ferry": [
        (
            "How often does the Aldermere ferry cross in summer?",
            None,
            "every half hour",
            "Every half hour, from May to September.",
            ["ferry-summer"],
        ),
        (
            "And in winter?",
            "How often does the Aldermere ferry cross in winter?",
            "twice a day",
            "Twice a day, at eight and at four.",
            ["ferry-winter"],
        ),
        (
            "What does it cost?",
            "What does a crossing on the Aldermere ferry cost?",
            "three crowns",
            "Three crowns; a bicycle is free.",
            ["ferry-price"],
        ),
        (
            "Can I bring my dog?",
            "Can I bring my dog on the Aldermere ferry?",
            "on a lead",
            "Yes, on a lead, on the open deck.",
            ["ferry-dogs"],
        ),
    ],
    "tower": [
        (
            "Who built the beacon tower of Harrow Point?",
            None,
            "Ilsa Marn",
            "The engineer Ilsa Marn.",
            ["tower-builder"],
        ),
        (
            "How high is it?",
            "How high is the beacon tower of Harrow Point?",
            "forty-one metres",
            "It is forty-one metres high.",
            ["tower-height"],
        ),
        (
            "What else did she design?",
            "What did Ilsa Marn design besides the beacon tower of Harrow Point?",
            "the iron bridge at Dunmoor",
            "The iron bridge at Dunmoor.",
            ["marn-bridge"],
        ),
        (
            "Does it still stand?",
            "Does the iron bridge at Dunmoor by Ilsa Marn still stand?",
            "it fell in the storm of 1889",
            "No, it fell in a storm.",
            ["marn-bridge"],
        ),
    ],
    "cheese": [
        (
            "What milk is Orrin cheese made from?",
            None,
            "the milk of grey sheep",
            "The milk of grey sheep.",
            ["cheese-milk"],
        ),
        (
            "How long does it ripen?",
            "How long does Orrin cheese ripen?",
            "seven months",
            "Seven months, in the caves below the dairy.",
            ["cheese-age"],
        ),
        (
            "And butter, what is that made from?",
            "What is valley butter made from?",
            "cow's milk",
            "Cow's milk.",
            ["butter-milk"],
        ),
        (
            "How long does it keep?",
            "How long does valley butter keep?",
            "three weeks",
            "Three weeks, in a cold cellar.",
            ["butter-age"],
        ),
    ],
}


def main() -> None:
    """Write conversations.jsonl, passages.jsonl and qrels.txt."""
    turns, labels = [], []
    for name, exchanges in CONVERSATIONS.items():
        history: list[dict[str, str]] = []
        for number, (question, rewrite, answer, reply, relevant) in enumerate(exchanges, 1):
            query = f"{name}_{number}"
            turn = {"query": query, "text": question, "conversation": name, "turn": number, "history": list(history)}
            turn |= {"rewrite": rewrite} if rewrite else {}
            turns.append(turn | {"answers": [answer]})
            labels += [f"{query} 0 {passage} 1" for passage in relevant]
            history += [{"role": "user", "text": question}, {"role": "assistant", "text": reply}]
    passages = [{"_id": name, "text": text} for name, text in PASSAGES.items()]
    for file, rows in (("conversations.jsonl", turns), ("passages.jsonl", passages)):
        lines = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
        (FOLDER / file).write_text(lines, encoding="utf-8")
    (FOLDER / "qrels.txt").write_text("\n".join(labels) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
