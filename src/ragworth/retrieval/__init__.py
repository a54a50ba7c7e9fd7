"""Systems to compare: retrieval pipelines, controlled contexts, and runs from files.

A pipeline is written ``bm25(k1=0.9) % 20 >> reversed``, in Python as in a file. In Python, a step without settings
needs its parentheses:

>>> from ragworth import retrieval
>>> str(retrieval.bm25(k1=0.9) % 20 >> retrieval.reversed())
'bm25(k1=0.9) % 20 >> reversed'

A kind of step is a class in ``steps/``, plus a line in `STEPS`; each is an attribute of this package under its name.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from ragworth.retrieval.pipeline import STEPS as STEPS
from ragworth.retrieval.pipeline import Pipeline as Pipeline
from ragworth.retrieval.pipeline import Step as Step
from ragworth.retrieval.pipeline import StepContext as StepContext
from ragworth.retrieval.pipeline import parse as parse

if TYPE_CHECKING:
    from ragworth.retrieval.execution import check as check
    from ragworth.retrieval.execution import retrieve as retrieve

_LATE = {"retrieve": "execution:retrieve", "check": "execution:check", "called": "steps.external:Called"}


def __getattr__(name: str) -> Any:
    """Import a kind of step, or another name of this package, on first use."""
    if name in _LATE:
        module, _, attribute = _LATE[name].partition(":")
        return getattr(import_module(f"{__name__}.{module}"), attribute)
    if name.startswith("_") or name not in STEPS:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return STEPS.get(name)
