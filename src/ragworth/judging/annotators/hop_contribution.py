"""Contribution of hops: what each search of an agent added to the answer, and when it could have stopped."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import Any

from ragworth.calls.programs import NoValue, Program
from ragworth.judging.annotators.contract import AnnotationItem
from ragworth.judging.annotators.contribution import ContributionAnnotator
from ragworth.judging.contribution.answer_value import GroupPrompts, split_answer
from ragworth.judging.contribution.hops import HopTable, hops_needed
from ragworth.judging.contribution.rows import details
from ragworth.judging.contribution.summary import outcome_values
from ragworth.judging.findings import AspectValues


@dataclass(frozen=True)
class HopContribution(ContributionAnnotator):
    """Splits answers among the hops of an agent instead of single passages.

    ``hops-needed`` is the number of hops after which the others together add no more than ``least`` nats.
    """

    hops: HopTable = field(kw_only=True)

    @classmethod
    def of(cls, annotator: ContributionAnnotator, hops: HopTable) -> HopContribution:
        """The same settings, for hops."""
        own = {each.name: getattr(annotator, each.name) for each in fields(annotator)}
        return cls(**own, hops=hops)

    @property
    def value_names(self) -> tuple[str, ...]:
        return (*(name for name in super().value_names if name != "cited-contributing"), "hops-needed")

    def program(self, item: AnnotationItem) -> Program[AspectValues]:
        hops = self.hops.get((item.system, item.query))
        if not hops:
            raise NoValue("no-hops", f"nothing says in which hop {item.system!r} found passages for {item.query!r}")
        self.check_size(len(hops))
        passages = [passage for hop in hops for passage in hop.passages]
        places = {passage: n for n, passage in enumerate(passages)}
        groups = [[places[passage] for passage in hop.passages] for hop in hops]
        texts = [self.texts.passage(passage) for passage in passages]
        prompts = GroupPrompts(self.template("reply"), self.texts.query(item.query), texts, groups)
        answer = yield from self.find_answer(item, prompts, len(hops))
        names = tuple(hop.name for hop in hops)
        split = yield from split_answer(prompts, names, answer, self.design, item.query, self.keep_cut, growing=True)
        values = outcome_values(split._replace(cited=()), names, self.least, accepted=self.is_accepted)
        values["hops-needed"] = float(hops_needed(split.growing, self.least))
        own = {"growing": list(split.growing), "searches": [hop.search for hop in hops], "cited": []}
        return AspectValues(values, details(split, names, self.least) | own, split.found.method)


def split_by_hops(annotator: Any, hops: HopTable) -> Any:
    """An annotator that splits answers among hops, if it splits them at all."""
    return HopContribution.of(annotator, hops) if isinstance(annotator, ContributionAnnotator) else annotator
