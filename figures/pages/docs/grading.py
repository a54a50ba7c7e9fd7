"""docs/grading.md: how far the grader by words agrees with people."""

import re

from figures.declare import DATA, Shown, figure
from figures.running import Run
from figures.tables import Table, table

STEPS = {
    "contains": "contains",
    "another form": "contains another form of",
    "number": "contains the number of",
    "coarser date": "contains a coarser date than",
    "name": "contains the name of",
    "most words": "contains most words of",
    "a part": "is a part of",
    "letters": "contains the letters of",
    "quantity": "gives the quantity of",
}
"""The steps of the page by the reasons that the grader gives."""
MEANINGS = {
    "contains": "its words follow each other in the text; case, accents, articles, punctuation and plurals aside, "
    "numbers and dates in one spelling",
    "another form": 'the same without what is in brackets; one side of an "or"; what is before a comma, '
    'except in a list; without "about", "in", "President" in front',
    "number": '"291" for "291 episodes", but not "24 days" for "24 hours"',
    "coarser date": "the year, or month and year, of a full date, and no other date beside it",
    "name": '"Judith Keppel", or "J. C. A. Keppel", for "Judith Cynthia Aline Keppel"',
    "most words": "two thirds of its words, at least two, all of its numbers among them, within 30 words; "
    'of a list ("red, green and blue"), a word of each item; '
    "long words by their first seven letters",
    "a part": 'the whole text is a run of the accepted answer\'s words: "Stanford" for "Stanford Cardinal"',
    "quantity": "the same quantity in another unit, magnitude or rounding",
    "letters": 'eight or more letters, blanks aside: "gall bladder" in "gallbladder"',
}
GRADERS = {
    "ragworth": "**by words**",
    "containment": "containment",
    "ROUGE-L ≥ 0.5": "ROUGE-L ≥ 0.5",
    "token F1 ≥ 0.5 (SQuAD)": "token F1 ≥ 0.5",
    "exact match (SQuAD)": "exact match",
    "one person by another": "one person by another",
}


@figure("python benchmarks/grading.py", seconds=150, needs=DATA)
def people(run: Run) -> Shown:
    output = run.output("python benchmarks/grading.py")
    graders, steps, *_ = run.tables("python benchmarks/grading.py")
    yield "agreement", str(held_out(graders))
    shares = {reason: (answers, share) for reason, answers, share in steps.rows}
    rows = [(step, MEANINGS[step], *shares[reason]) for step, reason in STEPS.items()]
    yield "steps", str(table(("step", "meaning", "answers", "correct by people"), rows, "llrr"))
    yield "undecided", f"{100 * float(shares['undecided'][1]):.0f} %"
    yield "missed", f"{100 * float(shares['wrong'][1]):.0f} %"
    for name, answers, accuracy, kappa in development(graders):
        yield f"{name}-answers", answers
        yield f"{name}-accuracy", accuracy.partition(" ")[0]
        yield f"{name}-kappa", kappa.partition(" ")[0]
    (line,) = re.findall(
        r"Declining, (\d+) .*precision (\S+ \S+), recall (\S+ [^;]+); .*?(\d+) found and .*?(\d+) found", output
    )
    read, precision, recall, right, wrong = line
    yield "read", read
    yield "precision", precision
    yield "recall", recall
    yield "found", str(int(right) + int(wrong))


@figure("python benchmarks/grading.py --cases", seconds=2)
def numbers(run: Run) -> Shown:
    decided, declined, contradictions = run.tables("python benchmarks/grading.py --cases")
    yield "decided", str(decided)
    yield "declined", str(declined)
    yield "contradictions", str(contradictions)


def held_out(graders: Table) -> Table:
    """Each set once, then its graders in the order of the page."""
    rows = []
    for name in ("EVOUNA-NQ", "NQ301"):
        mine = {row[4]: row for row in graders.rows if row[:2] == (name, "held-out")}
        for number, (grader, shown) in enumerate((g, s) for g, s in GRADERS.items() if g in mine):
            _, _, answers, questions, _, accuracy, kappa = mine[grader]
            head = (name, f"{answers} ({questions})") if not number else ("", "")
            rows.append((*head, shown, accuracy, kappa))
    return table(("held-out half", "answers (questions)", "grader", "accuracy", "κ"), rows, "lrlrr")


def development(graders: Table) -> list[tuple[str, str, str, str]]:
    """Name, answers, accuracy and κ of our grader on the development half of both sets."""
    return [
        (name.partition("-")[0].lower(), answers, accuracy, kappa)
        for name, half, answers, _, grader, accuracy, kappa in graders.rows
        if half == "development" and grader == "ragworth"
    ]
