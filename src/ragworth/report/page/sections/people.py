"""Whether automatic grades agree with people's, where answers have both."""

from __future__ import annotations

from ragworth.answer_outcomes import GRADE, HUMAN, PREFERENCE, outcome_scores
from ragworth.comparison import rank
from ragworth.core.errors import format_count, format_list
from ragworth.data import Outcomes, Scores
from ragworth.judging.graders.agreement import GradeAgreement, RankingFlip, grade_agreement
from ragworth.report.document import Cell, DocumentBlock, Paragraph, Section, TableBlock, TableColumn
from ragworth.report.page.view import ReportView
from ragworth.report.wording import signed


def section(view: ReportView) -> Section | None:
    """Agreement, and a warning if the automatic grades would change the ranking; None without grades by both."""
    found = _agreements(view.results.outcomes)
    if not found or view.results.outcomes is None:
        return None
    scores = outcome_scores(view.results.outcomes, view.results.said, view.results.answers)
    blocks: list[DocumentBlock] = [_conclusion(each, scores) for each in found]
    blocks.append(_table(found))
    return Section("people", "Do the automatic grades agree with people?", blocks, "People")


def _agreements(outcomes: Outcomes | None) -> list[GradeAgreement]:
    if outcomes is None:
        return []
    aspects = outcomes.distinct("aspect")
    people = sorted(
        (name for name in aspects if HUMAN in name.lower() and not name.endswith(PREFERENCE)),
        key=lambda name: name != HUMAN,
    )
    graders = [name for name in aspects if name not in people and (name == GRADE or name.endswith(f"-{GRADE}"))]
    if not people:
        return []
    human = Outcomes.trusted(outcomes.having("aspect", people[:1]).frame)
    found = [grade_agreement(outcomes.having("aspect", [name]), human) for name in graders]
    return [each for several in found for each in several if each.n or each.undecided]


def _conclusion(found: GradeAgreement, scores: Scores) -> Paragraph:
    if not found.n:
        return Paragraph(f"{found.aspect}: no answer that people graded has an automatic grade.", "note warn")
    both = format_count(found.n, "answer")
    if found.accuracy is None:
        words = f"Single automatic grades ({found.aspect}) can't be compared with people's: {found.kappa.reason}."
    else:
        words = f"The automatic grades ({found.aspect}) equal people's for {100 * found.accuracy:.0f} % of the {both} "
        words += f"that have both (κ {_kappa(found)})."
    if found.undecided:
        words += f" {format_count(found.undecided, 'more answer')} that people graded {_have(found.undecided)} none."
    ranked = [set(rank(scores, name).order) for name in (found.aspect, found.human_aspect)]
    flips = [_flip(each) for each in found.flips if {each.better, each.worse} <= set.intersection(*ranked)]
    if not flips:
        return Paragraph(words, "note")
    pairs = format_list(flips, 4)
    return Paragraph(f"{words} They would change the ranking: {pairs}. Trust people's grades here.", "note warn")


def _have(number: int) -> str:
    return "has" if number == 1 else "have"


def _flip(flip: RankingFlip) -> str:
    return f"people prefer {flip.better} to {flip.worse}, the automatic grades {flip.worse} to {flip.better}"


def _kappa(found: GradeAgreement) -> str:
    kappa = found.kappa
    if kappa.value is None:
        return f"undefined: {kappa.reason}"
    ends = kappa.interval
    if ends is None:
        return signed(kappa.value)
    return f"{signed(kappa.value)}, 95 % interval {signed(ends.low)} to {signed(ends.high)}"


def _table(found: list[GradeAgreement]) -> TableBlock:
    """Means by people and by the automatic grades, of the same answers, in people's order."""
    rows: list[list[Cell]] = [
        [
            each.aspect,
            system.system,
            signed(system.human, 3),
            "–" if system.automatic is None else signed(system.automatic, 3),
            f"{system.n_automatic:,} of {system.n_human:,}",
        ]
        for each in found
        for system in each.systems
    ]
    names = ("People", "Automatic", "Graded by both")
    columns = [TableColumn("Grades"), TableColumn("System"), *(TableColumn(name, True) for name in names)]
    return TableBlock("Mean grade of the answers that people graded", columns, rows, "people")
