"""Names of persons and places, codes, opening hours and eras in another spelling than the accepted answer has."""

from __future__ import annotations

import pytest

from ragworth.text_match.place_names import with_place_names
from ragworth.text_match.short_answers import grade_short_answer

SAME = [
    ("Who painted Guernica?", "Pablo Picasso", "It was painted by Picasso in 1937."),
    ("Who wrote Faust?", "Johann Wolfgang von Goethe", "Goethe wrote it."),
    ("Who is the CEO?", "Dr. Anna Schmidt", "Ms Schmidt"),
    ("Which country won the 1974 World Cup?", "Germany", "Duitsland"),
    ("Where is the Oktoberfest?", "Munich", "In München."),
    ("Quel pays a gagné ?", "l'Espagne", "Spain won."),
    ("In which country is Geneva?", "Switzerland", "Die Schweiz"),
    ("Where?", "Mumbai, India", "Bombay"),
    ("Which country?", "Japan", "日本です。"),
    ("What is the hotline?", "+49 30 1234567", "Call 030 1234567."),
    ("What is the phone number?", "(555) 010-4477", "5550104477"),
    ("What is the order number?", "AB-12345", "It is AB12345."),
    ("Which ISBN?", "978-3-16-148410-0", "9783161484100"),
    ("What is the IBAN?", "DE89 3704 0044 0532 0130 00", "DE89370400440532013000"),
    ("When is the library open?", "9 am to 5 pm", "09:00-17:00"),
    ("When is the library open?", "Mon-Fri 9-17", "Monday to Friday, 9 am to 5 pm"),
    ("When is it open?", "9:00–17:00", "It is open from 9 a.m. until 5 p.m."),
    ("When was Caesar assassinated?", "44 BC", "44 BCE"),
    ("When did it fall?", "476 AD", "In A.D. 476."),
    ("Wann war das?", "300 BC", "300 v. Chr."),
    ("Since which version?", "v4.2.1", "4.2.1"),
    ("What is the rating?", "AA−", "It is rated AA- by S&P."),
    ("Fax number?", "+1 212 555 0134", "(212) 555-0134"),
    ("Invoice number?", "2023/0417", "20230417"),
    ("Qui a écrit Germinal ?", "Émile Zola", "C'est Zola qui l'a écrit."),
]
OTHER = [
    ("Who wrote it?", "Emily Brontë", "Charlotte Brontë wrote it."),
    ("Who was president?", "George H. W. Bush", "Barbara Bush"),
    ("Who founded Bosch?", "Robert Bosch", "Bosch was founded in 1886."),
    ("Where?", "Germany", "Frankrijk"),
    ("What is the order number?", "AB-12345", "AB-12354"),
    ("What is the hotline?", "+49 30 1234567", "030 1234568"),
    ("When is the library open?", "9 am to 5 pm", "9 am to 6 pm"),
    ("When was the battle?", "490 BC", "In 490 CE"),
    ("What is the rating?", "AA+", "AA-"),
    ("What is the rating?", "AA", "AA+"),
    ("What is the blood type?", "O negative", "O+"),
    ("Which version?", "3.1", "3.10"),
    ("Which Python version is needed?", "3.10", "Python 3.1"),
    ("Minimum Node version?", "18.12", "18.1"),
    ("Which section?", "7.1", "7.10"),
    ("Which function?", "os.path.join", "os.path.split"),
    ("Which flag?", "-v", "-V"),
    ("Who chairs it?", "Laura Stein", "It is chaired by Mr. Stein's deputy, Paul Roth."),
    ("What is the ZIP code?", "02139", "2139"),
]


@pytest.mark.parametrize(("question", "accepted", "answer"), SAME)
def test_other_spellings_of_the_answer_are_correct(question: str, accepted: str, answer: str) -> None:
    assert grade_short_answer(answer, [accepted], question=question).label == "correct"


@pytest.mark.parametrize(("question", "accepted", "answer"), OTHER)
def test_other_names_and_codes_are_not_correct(question: str, accepted: str, answer: str) -> None:
    assert grade_short_answer(answer, [accepted], question=question).label in ("wrong", "undecided")


def test_only_the_place_of_the_answer_is_renamed() -> None:
    assert with_place_names("Wien, nicht Prag", "Vienna") == ("Vienna, nicht Prag", "Vienna")
