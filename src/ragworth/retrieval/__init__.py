"""Systems to compare: retrieval pipelines, controlled contexts, and runs from files.

A pipeline is written ``bm25(k1=0.9) % 20 >> reversed``, in Python as in a file. In Python, a step without settings
needs its parentheses:

>>> from ragworth import retrieval
>>> str(retrieval.bm25(k1=0.9) % 20 >> retrieval.reversed())
'bm25(k1=0.9) % 20 >> reversed'

A kind of step is a class in ``steps/``, plus a line in :data:`STEPS`; each is an attribute of this package under its
name. Other packages add theirs through entry points in the group ``ragworth.retrieval``.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from ragworth.core.registry import Registry
from ragworth.retrieval.contract import Step as Step
from ragworth.retrieval.contract import StepContext as StepContext

if TYPE_CHECKING:
    from ragworth.retrieval.execution import check as check
    from ragworth.retrieval.execution import retrieve as retrieve
    from ragworth.retrieval.parsing import parse as parse
    from ragworth.retrieval.pipeline import Pipeline as Pipeline

STEPS: Registry[type[Step]] = Registry(
    "kind of step",
    "ragworth.retrieval",
    {
        "rewritten": "ragworth.retrieval.steps.rewritten:Rewritten",
        "bm25": "ragworth.retrieval.steps.bm25:Bm25",
        "dense": "ragworth.retrieval.steps.dense:Dense",
        "sparse": "ragworth.retrieval.steps.sparse:Sparse",
        "fused": "ragworth.retrieval.steps.fused:Fused",
        "run": "ragworth.retrieval.steps.given_run:Run",
        "within": "ragworth.retrieval.steps.within:Within",
        "random": "ragworth.retrieval.steps.random_sample:Random",
        "oracle": "ragworth.retrieval.steps.oracle:Oracle",
        "adversary": "ragworth.retrieval.steps.oracle:Adversary",
        "gold": "ragworth.retrieval.steps.controlled:Gold",
        "best_by": "ragworth.retrieval.steps.controlled:BestBy",
        "rerank": "ragworth.retrieval.steps.cross_encoder:Rerank",
        "listwise": "ragworth.retrieval.steps.listwise:Listwise",
        "useful": "ragworth.retrieval.steps.useful:Useful",
        "mmr": "ragworth.retrieval.steps.mmr:Mmr",
        "reversed": "ragworth.retrieval.steps.reorder:Reversed",
        "shuffled": "ragworth.retrieval.steps.reorder:Shuffled",
        "top": "ragworth.retrieval.steps.reorder:Top",
    },
)


_PUBLIC = {
    "retrieve": "execution",
    "check": "execution",
    "Pipeline": "pipeline",
    "parse": "parsing",
    "called": "steps.external:Called",
}


def __getattr__(name: str) -> Any:
    """Import a kind of step, or another name of this package, on first use."""
    if name in _PUBLIC:
        module, _, attribute = _PUBLIC[name].partition(":")
        return getattr(import_module(f"{__name__}.{module}"), attribute or name)
    if name.startswith("_") or name not in STEPS:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return STEPS.get(name)
