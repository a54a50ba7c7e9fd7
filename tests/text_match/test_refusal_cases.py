"""Answers that decline and have numbers or lists in them, and answers that only sound as if they declined."""

from __future__ import annotations

from typing import NamedTuple

import pytest

from ragworth.text_match.short_answers import grade_short_answer


class Case(NamedTuple):
    question: str
    accepted: str
    answer: str


DECLINE = [
    Case(
        "What is the FY2018 capital expenditure amount (in USD millions) for 3M?",
        "$1577.00",
        "I'm sorry, but you haven't provided the cash flow statement for FY2018. Please share it so that I can look "
        "up the capital expenditure.",
    ),
    Case(
        "What is the FY2019 fixed asset turnover ratio for Activision Blizzard?",
        "24.26",
        "To calculate the FY2019 fixed asset turnover ratio, we would need:\n\n1. Net sales for FY2019\n2. Net "
        "property, plant and equipment for FY2018 and FY2019\n\nThe excerpts only show the revenue of 2017 "
        "($7,017 million), so the ratio can't be calculated.",
    ),
    Case(
        "What is the quantity of restructuring costs outlined in AES Corporation's income statements for FY2022?",
        "0",
        "Unfortunately, the context has no details on restructuring costs in 2022. It mentions 3 segments: Utilities, "
        "Generation and New Energy.",
    ),
    Case(
        "What was the gross margin in Q3 2021?",
        "42.1%",
        "I couldn't find the gross margin for Q3 2021. The passages cover:\n- Q1 2021: 40.2%\n- Q2 2021: 41.0%",
    ),
    Case(
        "What is the deductible of the Gold plan?",
        "$500",
        "Sorry, I can't tell from these documents. They describe the Silver plan ($1,000) and the Bronze plan "
        "($2,500), but not the Gold plan.",
    ),
    Case(
        "How many employees does the plant have?",
        "1,150",
        "There is no information about the number of employees. Only the area of the plant (42,000 m²) and the year "
        "of its opening (1998) are stated.",
    ),
    Case(
        "What is the days payable outstanding (DPO) of Best Buy for FY2017?",
        "64.12",
        "I would need the following data to calculate DPO:\n\n- Accounts payable of FY2016 and FY2017\n- Cost of goods "
        "sold in FY2017\n\nThese aren't in the text.",
    ),
    Case(
        "What is the population of the district?",
        "48,300",
        "I'm afraid I can't answer that. The census of 2011 isn't among the 10 documents I was given.",
    ),
    Case(
        "Wie hoch war der Umsatz 2021?",
        "4,2 Mrd. €",
        "Leider enthält der Text keine Angaben zum Umsatz 2021. Genannt werden nur 2018 (3,1 Mrd. €) und 2019.",
    ),
    Case(
        "Quel est le chiffre d'affaires en 2021 ?",
        "4,2 milliards d'euros",
        "Les documents ne mentionnent pas le chiffre d'affaires de 2021 ; ils donnent ceux de 2018 et 2019.",
    ),
    Case(
        "¿Cuántos empleados tiene?",
        "1.150",
        "El texto no menciona cuántos empleados tiene. Solo indica 3 sedes: Madrid, Lima y Quito.",
    ),
]

ANSWER = [
    Case("What is the fee?", "25 euros", "Sorry for the delay: the fee is 25 euros."),
    Case("What is the fee?", "25 euros", "Breakfast is not provided; the fee is 25 euros."),
    Case("Which meals are included?", "dinner", "Lunch is not provided, but dinner is included."),
    Case("What did the minister say?", "that he was sorry", "The minister said that he was sorry."),
    Case("What is the title of the song?", "Sorry", "The song is called Sorry."),
    Case("What must tenants bring?", "their own towels", "Towels are not provided, so tenants bring their own towels."),
    Case("Why was the claim denied?", "no receipt", "It was denied because the receipt was not provided."),
    Case("What is covered?", "theft and fire", "Theft and fire are covered. Flood is not mentioned in the policy."),
    Case("How many patients dropped out?", "12", "12 patients dropped out; reasons were not given for 3 of them."),
    Case("What did the auditor criticise?", "missing receipts", "The auditor criticised missing receipts."),
    Case("Which figure was restated?", "net income", "Net income was restated. The 2019 figure was not restated."),
    Case("What was the revenue?", "$4.2 billion", "$4.2 billion. The filing doesn't break out revenue by segment."),
    Case("Who is unknown?", "the author", "The author is unknown, the publisher was Teubner."),
    Case("What happens without a receipt?", "no refund", "If you haven't provided a receipt, there is no refund."),
]


REVENUE = "What was the net revenue in FY2022?"


@pytest.mark.parametrize(
    "answer",
    [
        "The excerpt fails to state FY2022; 2021 was $4.3 million.",
        "Net revenue for FY2022: N/A (only 2021: $4.3 million).",
        "There was no FY2022 figure among the 12 tables.",
        "No relevant figures appear in pages 1-12.",
        "Data for this year is absent: only 2021 ($4.3 million) is shown.",
        "Hmm, none of the 4 documents talks about 2022, just 2021 ($4.3 million).",
        "Regrettably the passages omit FY2022. In 2021 it was $4.3 million.",
        "Based on the excerpts, FY2022 can't be given. In 2021 it was $4.3 million.",
    ],
)
def test_what_is_said_of_the_sources_is_not_wrong(answer: str) -> None:
    assert grade_short_answer(answer, ["$5.1 million"], question=REVENUE).label in ("abstained", "undecided")


@pytest.mark.parametrize(
    ("question", "accepted", "answer"),
    [
        (REVENUE, "$5.1 million", "According to the report, it was $4.3 million."),
        ("Which table lists revenue?", "Note 4", "Table 2 does."),
        ("Did sales decline?", "No", "Yes, the report shows a decline."),
    ],
)
def test_an_answer_from_a_source_may_be_wrong(question: str, accepted: str, answer: str) -> None:
    assert grade_short_answer(answer, [accepted], question=question).label == "wrong"


@pytest.mark.parametrize("case", DECLINE)
def test_a_refusal_with_numbers_or_lists_is_not_wrong(case: Case) -> None:
    assert grade_short_answer(case.answer, [case.accepted], question=case.question).label in ("abstained", "undecided")


@pytest.mark.parametrize("case", ANSWER)
@pytest.mark.parametrize("accepted", ["", "Zanzibar"])
def test_regret_and_what_is_not_provided_do_not_decline_in_passing(case: Case, accepted: str) -> None:
    label = grade_short_answer(case.answer, [accepted or case.accepted], question=case.question).label
    assert label != "abstained"


def test_regret_beside_another_answer_does_not_decline() -> None:
    assert grade_short_answer("I'm sorry, it's Lyon.", ["Paris"]).label == "undecided"
    assert grade_short_answer("I'm sorry.", ["Paris"]).label == "abstained"
