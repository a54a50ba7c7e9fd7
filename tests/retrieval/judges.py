"""A judge that is always right, passages for it, and the steps that ask it."""

from __future__ import annotations

import re
from typing import Any

from ragworth.data import Contexts
from ragworth.llm.contract import Choose, Generate, Request
from ragworth.llm.scripted import Scripted, ScriptedReply
from ragworth.retrieval import StepContext
from ragworth.retrieval.pipeline import unscored_contexts
from ragworth.retrieval.reranker import LlmReranker
from ragworth.retrieval.steps.listwise import Listwise
from ragworth.retrieval.steps.useful import Useful
from tests.retrieval.samples import world


def grades(request: Request) -> list[int]:
    """The grades of the passages in a prompt, in their order."""
    return [int(each) for each in re.findall(r"grade (\d+)", request.prompt.messages[-1].content)]


def perfect(request: Request) -> ScriptedReply:
    """A judge that reads the grade (0 to 9) in the text, and sees no difference between equal ones."""
    found = grades(request) or [5]
    if isinstance(request, Generate):
        order = sorted(range(len(found)), key=lambda place: -found[place])
        return " > ".join(f"[{place + 1}]" for place in order)
    assert isinstance(request, Choose)
    return {"NO-RESPONSE": 1 - found[0] / 10}


def graded(values: list[int], model: Any = None, **more: Any) -> tuple[StepContext, Contexts]:
    """Passages with these grades, and a run that has them in their order."""
    texts = {f"p{number:03}": f"It has grade {value}, passage {number}." for number, value in enumerate(values)}
    context = world(texts, {"q": "Which is best?"}, None, model=model or Scripted(perfect), **more)
    return context, unscored_contexts([("q", list(texts))])


def reranked(step: LlmReranker, values: list[int], model: Any = None, **more: Any) -> list[int]:
    """Places of the passages in their new order."""
    context, before = graded(values, model, **more)
    made = step.apply(before, context)
    return [int(each[1:]) for each in made.frame.sort("rank")["passage"]]


def ideal(values: list[int]) -> list[int]:
    return sorted(range(len(values)), key=lambda place: -values[place])


METHODS: list[LlmReranker] = [Listwise(), Useful()]
