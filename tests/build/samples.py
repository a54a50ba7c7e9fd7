"""A small invented corpus, and a reader that finds what it says."""

from __future__ import annotations

import re
from pathlib import Path

from ragworth.judging.annotators.abstention import CONTROL_QUESTIONS
from ragworth.llm.contract import Choose, Request
from ragworth.llm.scripted import Scripted, ScriptedReply

TEXTS = {
    "mill.md": "# Marrow mill\n\nThe mill was built in 1820 by the engineer Tomasina Oake from Dunmouth. It has "
    "14 millstones and a wheel of oak. The owners include farmers, bakers and two brewers. It burned down on "
    "3 May 1899 after a storm over the valley.\n",
    "bridge.md": "# Quill bridge\n\nThe bridge was opened in 1904 by the mayor Osric Pell of Harrow. It carries "
    "9,200 carts every week over the river. The toll was abolished in 1951 by the council of Annet.\n",
    "tram.html": "<title>Annet tram</title><p>The first line was opened in 1911 between Harrow and the sea. Each car "
    "seats 36 passengers on wooden benches. The line was closed in 1962 by the company Lowen Works for good.</p>",
    "glass.txt": "The works melt glass at 1450 degrees in ovens of brick. They were founded in 1788 by the trader "
    "Greta Sorley of Veldrin. About 60 people blow the glass by hand in two halls.\n",
}


def write_corpus(folder: Path) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in TEXTS.items():
        (folder / name).write_text(text)
    return folder


def careful_reader() -> Scripted:
    """Answers if most words of the question are in the prompt's passages, with the answer of no question; declines on
    control questions as it should."""
    answered = {each.answered for each in CONTROL_QUESTIONS}
    unanswered = {each.unanswered for each in CONTROL_QUESTIONS}

    def reply(request: Request) -> ScriptedReply:
        prompt = "\n".join(message.content for message in request.prompt.messages)
        asked = re.findall(r"^Question: (.*)$", prompt, re.MULTILINE)[-1]
        shown = "<document" in prompt or "<passage 1" in prompt
        knows = shown and asked not in unanswered and (asked in answered or "which" in asked.casefold())
        if isinstance(request, Choose):
            return {label: (0.05 if knows else 0.95) if label == "NO-RESPONSE" else 0.001 for label in request.labels}
        return "1820" if knows else "NO-RESPONSE"

    return Scripted(reply)
