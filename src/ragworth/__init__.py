"""ragworth: what retrieved passages are worth to the language model that reads them.

>>> import ragworth
>>> contexts = ragworth.Contexts({"q1": {"d1": 2.0, "d2": 1.0}})
>>> ragworth.score(contexts, {"q1": {"d2": 1}}, "RR").frame["value"].to_list()
[0.5]

Names are imported when they are first used, so that ``import ragworth`` costs next to nothing.
"""

from __future__ import annotations

from importlib import import_module

TYPE_CHECKING = False  # as typing has it, without importing that: a command begins here
if TYPE_CHECKING:
    from typing import Any

__version__ = "0.1.0"

_PUBLIC = {
    "Contexts": "ragworth.data",
    "Judgments": "ragworth.data",
    "Ratings": "ragworth.data",
    "Answers": "ragworth.data",
    "Outcomes": "ragworth.data",
    "Scores": "ragworth.data",
    "Collection": "ragworth.data.collection",
    "Metric": "ragworth.metrics.declaration",
    "Tokens": "ragworth.metrics.ground_truth",
    "RagworthError": "ragworth.core.errors",
    "InputError": "ragworth.core.errors",
    "parse": "ragworth.metrics.parsing",
    "read_answers": "ragworth.judging.answers",
    "read_contexts": "ragworth.formats",
    "read_judgments": "ragworth.formats",
    "read_ratings": "ragworth.formats",
    "load": "ragworth.formats",
    "write": "ragworth.formats",
    "score": "ragworth.scoring",
    "required": "ragworth.metrics.required_passages",
    "utilities": "ragworth.metrics.utility",
    "export": "ragworth.exports",
    "summarise": "ragworth.comparison",
    "compare": "ragworth.comparison",
    "correlate": "ragworth.comparison",
    "annotate": "ragworth.judging.runner",
    "answer": "ragworth.judging.answers",
    "evaluate": "ragworth.evaluation.run",
    "retrieve": "ragworth.retrieval.execution",
    "chunk": "ragworth.retrieval.chunks",
    "study": "ragworth.studies.run",
    "Results": "ragworth.results",
    "grade": "ragworth.judging.runner",
    "llm": "ragworth.llm",
    "ask": "ragworth.calls.job",
    "prompt": "ragworth.llm.prompts:load_prompt",
    "Job": "ragworth.calls.job",
    "Prompt": "ragworth.llm.contract",
    "Generate": "ragworth.llm.contract",
    "Score": "ragworth.llm.contract",
    "Choose": "ragworth.llm.contract",
    "Failure": "ragworth.llm.contract",
}

if TYPE_CHECKING:
    from ragworth.calls.job import Job, ask
    from ragworth.comparison import compare, correlate, summarise
    from ragworth.core.errors import InputError, RagworthError
    from ragworth.data import Answers, Contexts, Judgments, Outcomes, Ratings, Scores
    from ragworth.data.collection import Collection
    from ragworth.evaluation.run import evaluate
    from ragworth.exports import export
    from ragworth.formats import load, read_contexts, read_judgments, read_ratings, write
    from ragworth.judging.answers import answer, read_answers
    from ragworth.judging.runner import annotate, grade
    from ragworth.llm import llm
    from ragworth.llm.contract import Choose, Failure, Generate, Prompt, Score
    from ragworth.llm.prompts import load_prompt as prompt
    from ragworth.metrics.declaration import Metric
    from ragworth.metrics.ground_truth import Tokens
    from ragworth.metrics.parsing import parse
    from ragworth.metrics.required_passages import required
    from ragworth.metrics.utility import utilities
    from ragworth.results import Results
    from ragworth.retrieval.chunks import chunk
    from ragworth.retrieval.execution import retrieve
    from ragworth.scoring import score
    from ragworth.studies.run import study

__all__ = [
    "Answers",
    "Choose",
    "Collection",
    "Contexts",
    "Failure",
    "Generate",
    "InputError",
    "Job",
    "Judgments",
    "Metric",
    "Outcomes",
    "Prompt",
    "RagworthError",
    "Ratings",
    "Results",
    "Score",
    "Scores",
    "Tokens",
    "__version__",
    "annotate",
    "answer",
    "ask",
    "chunk",
    "compare",
    "correlate",
    "evaluate",
    "export",
    "grade",
    "llm",
    "load",
    "parse",
    "prompt",
    "read_answers",
    "read_contexts",
    "read_judgments",
    "read_ratings",
    "required",
    "retrieve",
    "score",
    "study",
    "summarise",
    "utilities",
    "write",
]


def __getattr__(name: str) -> Any:
    if name not in _PUBLIC:
        raise AttributeError(f"module 'ragworth' has no attribute {name!r}")
    module, _, attribute = _PUBLIC[name].partition(":")
    return getattr(import_module(module), attribute or name)


def __dir__() -> list[str]:
    return sorted(__all__)
