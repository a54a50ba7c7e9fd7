"""Judgments, mostly by a model: of passages, of passages for sub-questions, and of whole contexts.

>>> import ragworth
>>> from ragworth.llm.scripted import Scripted
>>> texts = ragworth.Collection.of(
...     queries={"query": ["q1"], "text": ["Who built the mill?"]},
...     passages={"passage": ["p1"], "text": ["Ann built the mill."]},
... )
>>> model = Scripted(lambda request: {"NO-RESPONSE": 0.25})
>>> ragworth.annotate("abstention", {"q1": {"p1": 1.0}}, texts, model).table.frame["value"].to_list()
[0.25]
"""

from __future__ import annotations

from ragworth.annotators.contract import Annotator
from ragworth.core.registry import Registry

ANNOTATORS: Registry[type[Annotator]] = Registry(
    "kind of judgment",
    "ragworth.annotators",
    {
        "abstention": "ragworth.annotators.abstention:AbstentionAnnotator",
        "relevance": "ragworth.annotators.relevance:RelevanceAnnotator",
        "containment": "ragworth.annotators.containment:ContainmentAnnotator",
        "downstream": "ragworth.annotators.downstream:DownstreamAnnotator",
        "likelihood": "ragworth.annotators.likelihood:LikelihoodAnnotator",
        "confidence": "ragworth.annotators.confidence:ConfidenceAnnotator",
        "ratings": "ragworth.annotators.ratings:RatingAnnotator",
        "contribution": "ragworth.annotators.contribution:ContributionAnnotator",
    },
)
