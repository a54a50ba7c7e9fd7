"""The grader by words: each label, each reason, and what must not be taken for an answer."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragworth.core.errors import InputError
from ragworth.text_match.refusals import find_refusal
from ragworth.text_match.short_answers import grade_short_answer

CORRECT = [
    ("contains", "It was Paris, of course.", ["London", "Paris"]),
    ("contains", "There are 1,234 of them.", ["one thousand two hundred thirty-four"]),
    ("contains", "On June 5, 1987 it opened.", ["1987-06-05"]),
    ("contains", "On June 5, 1987 it opened.", ["1987"]),
    ("contains", "The cell is the unit of life.", ["cells"]),
    ("contains", "It was sung by Lady Gaga12.", ["Lady Gaga"]),
    ("contains", "No, it was Paris, not Lyon.", ["Paris"]),
    ("contains", "It is Symphony No. 5.", ["Symphony No. 5"]),
    ("contains the name of", "Bhimrao Ramji Ambedkar wrote it.", ["B. R. Ambedkar"]),
    ("contains the letters of", "It was sung byLady Gaga.", ["Lady Gaga"]),
    ("contains", "الجواب هو باريس", ["باريس"]),
    ("contains", "Der Preis beträgt leider 30 €.", ["30 €"]),
    ("contains", "I'm sorry, the store closes at 5 pm.", ["5 pm"]),
    ("says", "Nein, leider nicht.", ["Nein"]),
    ("contains most words of", "blue, red and green", ["red, green, blue"]),
    ("contains another form of", "Landover", ["Landover, Maryland"]),
    ("contains another form of", "John F. Kennedy.", ["President John F. Kennedy"]),
    ("contains a coarser date than", "It was banned in 1965.", ["1 August 1965"]),
    ("contains a coarser date than", "In August 1965", ["1965-08-01"]),
    ("contains most words of", "The deadline was 05.03.2024 for the main form", ["main form deadline"]),
    ("contains the name of", "It was Judith Keppel.", ["Judith Cynthia Aline Keppel"]),
    ("contains most words of", "John Charles Daly", ["John Daly"]),
    ("is a part of", "Stanford", ["Stanford Cardinal"]),
    ("contains the letters of", "the gallbladder", ["gall bladder"]),
    ("says", "No, it is not.", ["no"]),
    ("says", "I think the answer is: yes", ["Yes"]),
    ("says", "The answer is A.", ["A"]),
    ("is the accepted answer", " ? ", ["?"]),
    ("contains", "None", ["none"]),
    ("declines as", "I don't know.", ["unanswerable"]),
    ("declines as", "Das steht nicht im Text.", ["The passages do not say."]),
    ("contains", "Go to `https://x.com/a`.", ["https://x.com/a"]),
    ("contains", "config.max_size (see app_config)", ["max_size"]),
    ("contains", "May 5,1987", ["May 5, 1987"]),
    ("contains", "On 3 May 1987,12 people died.", ["12"]),
    ("contains", "3,14159", ["3.14159"]),
    ("contains", "Peter Gardner[4] Ostrum", ["Peter Gardner[4] Ostrum"]),
    ("is a part of", "once", ["once a week"]),
    ("is a part of", "Dvořák", ["Dvořák is a composer"]),
    ("is a part of", "Malmö", ["Malmö i Sverige"]),
    ("contains another form of", "It was Einstein.", ["Einstein, a physicist, born in Ulm"]),
    ("contains most words of", "Any Python from 3.11 on; Ubuntu 24.04 ships it.", ["Python 3.11"]),
]

WRONG = [
    ("诺贝尔文学奖", ["诺贝尔和平奖"]),
    ("v2.3.10", ["2.3.1"]),
    ("Up to 25 users [3].", ["3"]),
    ("It allows five users (source: doc 3).", ["3"]),
    ("There are four steps:\n\n1. Open\n2. Click\n3. Save\n4. Close", ["3"]),
    ("부산입니다", ["서울"]),
    ("It was Paris.", ["unanswerable"]),
    ("Der Anstieg betrug 3,5 %.", ["5 %"]),
    ("Es waren −3,5 %.", ["3,5 %"]),
    ("It was Berlin.", ["Paris"]),
    ("Yes, it is.", ["no"]),
    ("A dog", ["A"]),
    ("It is 15.", ["5"]),
    ("It was 5 June.", ["5"]),
    ("24 days", ["24 hours"]),
    ("6 June 1987", ["5 June 1987"]),
    ("July 1987", ["5 June 1987"]),
    ("between 1986 and 1987", ["5 June 1987"]),
    ("of the", ["Lord of the Rings"]),
    ("タ東ワ京", ["東京タワー"]),
    ("Blood type A", ["A+"]),
    ("!", ["Paris"]),
]


@pytest.mark.parametrize(("how", "text", "accepted"), CORRECT)
def test_correct(how: str, text: str, accepted: list[str]) -> None:
    verdict = grade_short_answer(text, accepted)
    assert verdict.label == "correct"
    assert verdict.why.startswith(f"{how} ")
    assert repr(accepted[-1]) in verdict.why


@pytest.mark.parametrize(("text", "accepted"), WRONG)
def test_wrong(text: str, accepted: list[str]) -> None:
    assert grade_short_answer(text, accepted).label == "wrong"


UNDECIDED = [
    ("World War I", ["World War II"], ""),
    ("Henry VII of England", ["Henry VIII of England"], ""),
    ("수도는 서울입니다.", ["서울"], ""),
    ("Martinez", ["Martin"], ""),
    ("her granddaughter", ["daughter"], "Who inherited the house?"),
    ("广州、上海和北京", ["北京、上海、广州"], ""),
    ("Paris", ["Paris en France"], ""),
    ("user@example.com", ["user@example.org"], ""),
    ("Employees may share passwords.", ["may not share passwords"], ""),
    ("Neither Lyon nor Nice; it's Paris.", ["Lyon"], ""),
    ("Tim Cook is not the chief executive; Sundar Pichai is.", ["Tim Cook"], "Who leads Google?"),
    ("The answer is [3].", ["3"], ""),
    ("Red, green and yellow", ["red, green, blue"], ""),
    ("Red", ["red, green and blue"], ""),
    ("北京", ["北京和上海"], ""),
    ("東京", ["東京、日本"], "首都はどこですか"),
    ("부산", ["서울과 부산"], ""),
    ("Non è Roma.", ["Roma"], ""),
    ("4,5", ["4, 5"], ""),
    ("不是北京", ["北京"], ""),
    ("1.500", ["1500"], ""),
    ("10.000 Euro", ["10,000 euros"], ""),
    ("There is no doubt about it.", ["no"], ""),
    ("Nobody knows his notebook", ["no"], ""),
    ("It was not Paris.", ["Paris"], ""),
    ("It was Paris in Texas.", ["the Paris of the Prairies"], ""),
    ("It opened 42 stores.", ["It opened 42 stores and closed 17."], ""),
    ("About $3 billion.", ["$2,600 million"], ""),
    ("Freight became cheaper.", ["Lower transport costs and higher prices raised the operating margin in Europe"], ""),
    ("Seven tests could not determine the pathogen.", ["7"], "How many tests were inconclusive?"),
]


@pytest.mark.parametrize(("text", "accepted", "question"), UNDECIDED)
def test_undecided(text: str, accepted: list[str], question: str) -> None:
    verdict = grade_short_answer(text, accepted, question=question)
    assert verdict.label == "undecided"
    assert verdict.why


def test_wrong_conclusions_of_earlier_versions() -> None:
    assert grade_short_answer("No, sales did not decline.", ["Yes, sales did decline."]).label == "wrong"
    asked = "What is the capital expenditure, in USD millions?"
    assert grade_short_answer("It was $1,577 million.", ["$1577.00"], question=asked).label == "correct"
    growth = "These results do not indicate a high growth company."
    assert (
        grade_short_answer(growth, ["No"], question="Do the results indicate a high growth company?").label == "correct"
    )


def test_the_reason_names_the_other_number() -> None:
    verdict = grade_short_answer("Revenue was $834 million.", ["$8.34 billion"])
    assert verdict == ("wrong", "has '834000000 dollar' for '$8.34 billion'")


def test_declining_comes_first() -> None:
    assert grade_short_answer("I do not know", ["no"]) == ("abstained", "declines: 'i do not know'")
    assert grade_short_answer("I don't know whether it was Paris.", ["Paris"]).label == "abstained"
    assert grade_short_answer("The text does not say, but it was Paris.", ["Paris"]).label == "correct"
    assert grade_short_answer("PASS", ["Paris"]).label == "wrong"
    assert grade_short_answer("PASS", ["Paris"], phrases=["pass"]).label == "abstained"


def test_declining_may_be_the_accepted_answer() -> None:
    assert grade_short_answer("Unknown.", ["unknown"]).label == "correct"
    assert grade_short_answer("It is unknown", ["unknown"]).label == "correct"
    assert grade_short_answer("I don't know", ["none"]).label == "abstained"


def test_documented_limits() -> None:
    """Said of something else, and in other words: words cannot tell."""
    assert grade_short_answer("Unlike London, Paris lost.", ["Paris"]).label == "correct"
    assert grade_short_answer("The French capital", ["Paris"]).label == "wrong"
    assert grade_short_answer("東京都", ["京都"]).label == "correct"


def test_what_cannot_be_graded() -> None:
    with pytest.raises(InputError, match="to be graded is blank"):
        grade_short_answer(" \n", ["x"])
    with pytest.raises(InputError, match="no accepted answers"):
        grade_short_answer("x", [])
    with pytest.raises(InputError, match="accepted answer 2 of 2 is blank"):
        grade_short_answer("x", ["y", " "])


ANSWER = st.text(min_size=1, max_size=20).filter(lambda text: bool(text.strip()))


@given(ANSWER)
def test_an_accepted_answer_is_correct(answer: str) -> None:
    assert grade_short_answer(answer, [answer]).label == "correct"


@given(ANSWER, st.lists(ANSWER, min_size=1, max_size=3), ANSWER)
def test_more_accepted_answers_never_make_it_wrong(text: str, accepted: list[str], other: str) -> None:
    if grade_short_answer(text, accepted).label == "correct":
        assert grade_short_answer(text, [*accepted, other]).label == "correct"
        assert grade_short_answer(text, [other, *accepted]).label == "correct"


@given(st.integers(0, 10**6), st.integers(0, 10**6))
def test_another_number_is_wrong(said: int, accepted: int) -> None:
    expected = "correct" if said == accepted else "wrong"
    assert grade_short_answer(f"There were {said:,} of them.", [str(accepted)]).label == expected
    assert grade_short_answer(f"There were {said} people", [f"{accepted:,} people"]).label == expected


@given(ANSWER)
def test_the_reason_for_abstaining_is_the_detectors(text: str) -> None:
    verdict = grade_short_answer(text, ["Popocatépetl volcano"])
    assert (verdict.label == "abstained") == (find_refusal(text) is not None)


@pytest.mark.parametrize(
    ("question", "accepted", "answer", "label"),
    [
        ("Is dental work covered?", "Dental work is covered.", "Yes", "undecided"),
        ("Is dental work covered?", "Dental work is covered.", "No.", "undecided"),
        ("Does the policy cover floods?", "The policy does not cover floods.", "No.", "undecided"),
        ("Does the policy cover floods?", "The policy does not cover floods.", "Yes, floods are covered.", "undecided"),
        ("Is dental work covered?", "Dental work is covered up to $500.", "Yes", "undecided"),
        ("", "Dental work is covered.", "Yes", "undecided"),
        ("Was the bridge built by Eiffel?", "The bridge was built by Roebling.", "Yes", "undecided"),
        ("Is Lyon the capital of France?", "Paris is the capital", "Yes", "undecided"),
        ("Is dental work covered?", "Only after a waiting period", "No.", "undecided"),
        ("Which work is covered?", "dental work", "No.", "wrong"),
    ],
)
def test_yes_or_no_for_an_answer_in_other_words(question: str, accepted: str, answer: str, label: str) -> None:
    assert grade_short_answer(answer, [accepted], question=question).label == label


@pytest.mark.parametrize(
    ("accepted", "answer", "label"),
    [
        ("0.654", "65.4 %", "correct"),
        ("0.654", "65.3 %", "undecided"),
        ("0.654", "45 %", "wrong"),
        ("0.654", "45", "wrong"),
        ("65.4", "65.4 %", "correct"),
        ("1.5", "1.5 percent", "correct"),
    ],
)
def test_a_share_may_be_a_percentage(accepted: str, answer: str, label: str) -> None:
    asked = "What percentage of patients recovered?"
    assert grade_short_answer(answer, [accepted], question=asked).label == label


@pytest.mark.parametrize(
    ("answer", "accepted", "label"),
    [
        ("Paris, Lyon, Marseille, Nice", ["Paris"], "undecided"),
        ("- Lyon\n- Paris\n- Nice", ["Paris"], "undecided"),
        ("In 1990, 1991 or 1992", ["1992"], "undecided"),
        ("Baker, California, USA", ["Baker, California, USA"], "correct"),
        ("Paris, Lyon, Marseille, Nice", ["Paris", "Lyon"], "correct"),
        ("Could be Paris, Lyon, Marseille, or Nice", ["Paris"], "undecided"),
        ("1990, 1991, 1992", ["1991"], "undecided"),
        ("Chicago, Illinois, USA", ["Chicago"], "undecided"),
        ("In Chicago, in the state of Illinois, USA", ["Chicago"], "correct"),
        ("It was Paris, which is in France, Europe.", ["Paris"], "correct"),
    ],
)
def test_one_of_several_candidates_is_undecided(answer: str, accepted: list[str], label: str) -> None:
    assert grade_short_answer(answer, accepted).label == label


@pytest.mark.parametrize(
    ("answer", "accepted", "label"),
    [
        ("1. Paris 2. Lyon 3. Nice", "Paris", "undecided"),
        ("1. Paris\n2. Lyon\n3. Nice", "Paris", "undecided"),
        ("It was his step-daughter.", "daughter", "undecided"),
        ("His mother-in-law", "mother", "undecided"),
        ("It is blue-green.", "green", "undecided"),
        ("His step-daughter, not his daughter-in-law: Eve", "Eve", "correct"),
        ("a Czech-language play", "Czech", "correct"),
        ("Coca-Cola", "Coca Cola", "correct"),
        ("a total of twenty-six episodes", "26", "correct"),
    ],
)
def test_a_hyphen_joins_a_word_and_a_number_begins_a_candidate(answer: str, accepted: str, label: str) -> None:
    assert grade_short_answer(answer, [accepted]).label == label


@pytest.mark.parametrize(
    ("answer", "accepted", "label"),
    [
        ("the USA", "United States of America", "undecided"),
        ("It was the U.S.", "United States", "undecided"),
        ("The United Kingdom did.", "UK", "undecided"),
        ("It was the World Health Organization.", "WHO", "undecided"),
        ("NYC", "New York City", "undecided"),
        ("It was the European Union.", "UN", "wrong"),
        ("в Москве", "Москва", "undecided"),
        ("German", "Germany", "undecided"),
        ("Berlin", "Germany", "wrong"),
    ],
)
def test_initials_and_inflected_forms_may_be_the_answer(answer: str, accepted: str, label: str) -> None:
    assert grade_short_answer(answer, [accepted]).label == label


@pytest.mark.parametrize(
    ("british", "american"),
    [
        *(("colour", "color"), ("theatre", "theater"), ("centre", "center"), ("grey", "gray")),
        *(("organisation", "organization"), ("aluminium", "aluminum"), ("traveller", "traveler")),
        *(("analysed", "analyzed"), ("catalogue", "catalog"), ("defence", "defense"), ("programme", "program")),
        *(("anaemia", "anemia"), ("leukaemia", "leukemia"), ("oedema", "edema"), ("diarrhoea", "diarrhea")),
    ],
)
def test_british_and_american_spelling_are_the_same(british: str, american: str) -> None:
    assert grade_short_answer(f"It is the {british}.", [american]).label == "correct"
    assert grade_short_answer(f"It is the {american}.", [british]).label == "correct"


@pytest.mark.parametrize(
    ("one", "other", "label"),
    [
        *(
            ("at 3:30 pm", "15:30", "undecided"),
            ("at 8 pm", "20:00", "undecided"),
            ("3:30", "4:30", "wrong"),
            ("17:15", "6.40 pm", "wrong"),
            ("23:45", "half past ten", "wrong"),
        ),
        *(("half", "50%", "undecided"), ("a quarter", "25%", "undecided"), ("a dozen", "12", "undecided")),
        *(("half", "a quarter", "wrong"), ("13", "12", "wrong"), ("in the first half, 3", "4", "wrong")),
        *(("It was nineteen eighty-seven.", "1987", "undecided"), ("twenty-seven", "28", "wrong")),
    ],
)
def test_numbers_in_forms_that_are_not_read(one: str, other: str, label: str) -> None:
    assert grade_short_answer(one, [other]).label == label
    assert grade_short_answer(other, [one]).label == label
