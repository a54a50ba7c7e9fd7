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

from ragworth.core.registry import Registry
from ragworth.judging.annotators.contract import Annotator

ANNOTATORS: Registry[type[Annotator]] = Registry(
    "kind of judgment",
    "ragworth.annotators",
    {
        "abstention": "ragworth.judging.annotators.abstention:AbstentionAnnotator",
        "relevance": "ragworth.judging.annotators.relevance:RelevanceAnnotator",
        "containment": "ragworth.judging.annotators.containment:ContainmentAnnotator",
        "downstream": "ragworth.judging.annotators.downstream:DownstreamAnnotator",
        "likelihood": "ragworth.judging.annotators.likelihood:LikelihoodAnnotator",
        "confidence": "ragworth.judging.annotators.confidence:ConfidenceAnnotator",
        "ratings": "ragworth.judging.annotators.ratings:RatingAnnotator",
        "contribution": "ragworth.judging.annotators.contribution:ContributionAnnotator",
    },
)
