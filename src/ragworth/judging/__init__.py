"""Judgments: all that asks a model about passages or answers, and what compares texts in its stead.

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

from typing import TYPE_CHECKING

from ragworth.core.registry import Registry

if TYPE_CHECKING:
    from ragworth.judging.judge import Annotator, Grader

ANNOTATORS: Registry[type[Annotator]] = Registry(
    "kind of judgment",
    "ragworth.annotators",
    {
        "abstention": "ragworth.judging.annotators.abstention:AbstentionAnnotator",
        "relevance": "ragworth.judging.annotators.relevance:RelevanceAnnotator",
        "containment": "ragworth.judging.annotators.containment:ContainmentAnnotator",
        "downstream": "ragworth.judging.annotators.answers:DownstreamAnnotator",
        "likelihood": "ragworth.judging.annotators.answers:LikelihoodAnnotator",
        "confidence": "ragworth.judging.annotators.confidence:ConfidenceAnnotator",
        "ratings": "ragworth.judging.annotators.relevance:RatingAnnotator",
        "contribution": "ragworth.judging.contribution.kinds:ContributionAnnotator",
    },
)
"""What judges passages, passages for sub-questions, or contexts."""

GRADERS: Registry[type[Grader]] = Registry(
    "grader",
    "ragworth.graders",
    {
        "deterministic": "ragworth.judging.graders.text:DeterministicGrader",
        "judge": "ragworth.judging.graders.judge:JudgeGrader",
        "ideal": "ragworth.judging.graders.judge:IdealGrader",
        "text": "ragworth.judging.graders.text:TextGrader",
        "bertscore": "ragworth.judging.graders.similarity:BERTScoreGrader",
        "utility": "ragworth.judging.graders.similarity:UtilityGrader",
        "coverage": "ragworth.judging.graders.coverage:CoverageGrader",
        "support": "ragworth.judging.graders.support:SupportGrader",
        "citations": "ragworth.judging.graders.support:CitationGrader",
        "contribution": "ragworth.judging.contribution.kinds:ContributionGrader",
    },
)
"""What grades answers."""
