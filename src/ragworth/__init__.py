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
    "Contexts": "ragworth.tables",
    "Judgments": "ragworth.tables",
    "Ratings": "ragworth.tables",
    "Answers": "ragworth.tables",
    "Outcomes": "ragworth.tables",
    "Scores": "ragworth.tables",
    "Collection": "ragworth.collection",
    "Metric": "ragworth.metrics.declare",
    "Tokens": "ragworth.metrics.engine",
    "RagworthError": "ragworth.errors",
    "InputError": "ragworth.errors",
    "parse": "ragworth.metrics.declare",
    "read_answers": "ragworth.answers.reading",
    "read_contexts": "ragworth.formats",
    "read_judgments": "ragworth.formats",
    "read_ratings": "ragworth.formats",
    "load": "ragworth.formats",
    "write": "ragworth.formats",
    "score": "ragworth.scoring",
    "required": "ragworth.metrics.required",
    "utilities": "ragworth.metrics.derived",
    "summarise": "ragworth.comparison",
    "compare": "ragworth.comparison",
    "correlate": "ragworth.comparison",
    "annotate": "ragworth.annotate.annotating",
    "answer": "ragworth.answers.generating",
    "evaluate": "ragworth.evaluation.running",
    "retrieve": "ragworth.retrieval.running",
    "chunk": "ragworth.retrieval.chunks",
    "study": "ragworth.studies.running",
    "Results": "ragworth.results",
    "grade": "ragworth.answers.grading",
    "llm": "ragworth.llm",
    "ask": "ragworth.calls.job",
    "prompt": "ragworth.prompts:load",
    "Job": "ragworth.calls.job",
    "Prompt": "ragworth.llm.contract",
    "Generate": "ragworth.llm.contract",
    "Score": "ragworth.llm.contract",
    "Choose": "ragworth.llm.contract",
    "Failure": "ragworth.llm.contract",
}

if TYPE_CHECKING:
    from ragworth.annotate.annotating import annotate
    from ragworth.answers.generating import answer
    from ragworth.answers.grading import grade
    from ragworth.answers.reading import read_answers
    from ragworth.calls.job import Job, ask
    from ragworth.collection import Collection
    from ragworth.comparison import compare, correlate, summarise
    from ragworth.errors import InputError, RagworthError
    from ragworth.evaluation.running import evaluate
    from ragworth.formats import load, read_contexts, read_judgments, read_ratings, write
    from ragworth.llm import llm
    from ragworth.llm.contract import Choose, Failure, Generate, Prompt, Score
    from ragworth.metrics.declare import Metric, parse
    from ragworth.metrics.derived import utilities
    from ragworth.metrics.engine import Tokens
    from ragworth.metrics.required import required
    from ragworth.prompts import load as prompt
    from ragworth.results import Results
    from ragworth.retrieval.chunks import chunk
    from ragworth.retrieval.running import retrieve
    from ragworth.scoring import score
    from ragworth.studies.running import study
    from ragworth.tables import Answers, Contexts, Judgments, Outcomes, Ratings, Scores

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
