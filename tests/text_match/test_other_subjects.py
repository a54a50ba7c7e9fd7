"""Answers that a text has, but says of something else: another part, row, period, end, or side of a comparison."""

from __future__ import annotations

import pytest

from ragworth.text_match.short_answers import grade_short_answer

TABLE = "| Plan | Price | Users |\n|---|---|---|\n| Basic | $9 | 5 |\n| Pro | $49 | 29 |\n| Team | $29 | 90 |"
OTHER = [
    ("Who won?", "Germany beat Brazil", "Brazil beat Germany."),
    ("What happened?", "Microsoft acquired Nuance", "Microsoft was acquired by Nuance."),
    ("Who pays the premium?", "the employer", "The employee pays the employer the premium."),
    ("Who defeated Hannibal?", "Scipio Africanus", "Hannibal defeated Scipio Africanus at Zama."),
    ("Who was defeated by Scipio?", "Hannibal", "Hannibal defeated Scipio."),
    ("Who did Germany beat?", "Brazil", "Brazil beat Germany."),
    ("Who reports to the CFO?", "the controller", "The CFO reports to the controller."),
    ("Who succeeded Thatcher?", "John Major", "John Major was followed by Tony Blair."),
    ("Who was the student of Socrates?", "Plato", "Socrates was a student of Plato."),
    ("Which is larger?", "Jupiter is larger than Saturn", "Saturn is larger than Jupiter."),
    ("Which is larger, Jupiter or Saturn?", "Jupiter", "Saturn is larger than Jupiter."),
    ("Which plan costs more?", "Basic", "Premium costs more than Basic."),
    ("Quel fleuve est plus long ?", "la Loire", "La Seine est plus longue que la Loire."),
    ("Welches Modell ist schneller?", "Modell A ist schneller als Modell B", "Modell B ist schneller als Modell A."),
    ("What is the price of the Pro plan?", "$29", TABLE),
    ("How many users does the Team plan have?", "29", TABLE),
    ("What is the price of the Pro plan?", "$29", "- Basic: $9\n- Pro: $49\n- Team: $29"),
    ("How many employees does the Berlin office have?", "120", "Berlin: 85, Munich: 120, Hamburg: 40"),
    ("What was revenue in Q3 2022?", "$5.2 million", "Revenue was $5.2 million in Q2 2022."),
    ("Wie hoch war der Umsatz im 2. Quartal?", "12 Mio. €", "Der Umsatz lag im 3. Quartal bei 12 Mio. €."),
    ("What was profit in H1?", "$3 million", "Profit in H2 was $3 million."),
    ("What was net income in fiscal 2021?", "$40 million", "Net income was $40 million in fiscal 2020."),
    ("When did the war start?", "1939", "The war ended in 1939."),
    ("When was she born?", "1867", "She died in 1867."),
    ("Wann begann der Krieg?", "1914", "Der Krieg endete 1914."),
    ("What time does it open?", "10 am", "It is open from 8 am to 10 am."),
    ("Which team did Croatia eliminate in 2018?", "England", "England eliminated Croatia."),
    ("Who owns Instagram?", "Meta", "Instagram owns Meta."),
    ("What time does the train depart?", "14:05", "The train arrives at 14:05."),
    ("What time is check-in?", "15:00", "Check-out is at 15:00."),
    ("Which Android version?", "Android 12", "Android 12L"),
]
SAME = [
    ("What happened?", "Microsoft acquired Nuance", "Nuance was acquired by Microsoft."),
    ("Who defeated Hannibal?", "Scipio Africanus", "Hannibal was defeated by Scipio Africanus."),
    ("Who pays the insurer?", "the broker", "The client pays the broker, who pays the insurer."),
    ("Who married Frida Kahlo?", "Diego Rivera", "Frida Kahlo married Diego Rivera."),
    ("Which country did not sign?", "Norway", "Every country except Norway signed."),
    ("Who succeeded Thatcher?", "John Major", "Thatcher was followed by John Major."),
    ("Who taught Plato?", "Socrates", "Plato was a student of Socrates."),
    ("Which is larger, Jupiter or Saturn?", "Jupiter", "Saturn is smaller than Jupiter."),
    ("What is the price of the Pro plan?", "$49", TABLE),
    ("How many users does the Team plan have?", "90", TABLE),
    ("What was revenue in Q3 2022?", "$5.2 million", "In the third quarter, it came to $5.2 million."),
    ("What was revenue in 2022?", "$5 million", "It was $4 million in 2021 and $5 million in 2022."),
    ("When did he die?", "1910", "He was born in 1828 and died in 1910."),
    ("When does the lease end?", "31 December 2025", "It runs from 1 January 2023 until 31 December 2025."),
    ("When did Mozart die?", "1791", "Mozart (1756–1791) was a composer."),
    ("When does the offer expire?", "30 June", "The offer is valid until 30 June."),
    ("What was revenue in 2019?", "£9 million", "In 2018 revenue was £8 million; in 2019 it was £9 million."),
    ("Wer ist älter, Anna oder Paul?", "Anna", "Paul ist jünger als Anna."),
    ("Who does the voice of Ash?", "Scarlett Johansson", "Ash is voiced by Scarlett Johansson."),
    ("When does the festival end?", "November 2", "It ends on November 2nd."),
    ("What time does it close?", "6 pm", "It is open from 10 am to 6 pm."),
]


@pytest.mark.parametrize(("question", "accepted", "answer"), OTHER)
def test_an_answer_said_of_something_else_is_undecided(question: str, accepted: str, answer: str) -> None:
    assert grade_short_answer(answer, [accepted], question=question).label == "undecided"


@pytest.mark.parametrize(("question", "accepted", "answer"), SAME)
def test_an_answer_said_of_what_is_asked_is_correct(question: str, accepted: str, answer: str) -> None:
    assert grade_short_answer(answer, [accepted], question=question).label == "correct"


@pytest.mark.parametrize("sign", [" ", "\n", "a", "1", "\n "])
def test_long_runs_of_a_sign_are_shortened(sign: str) -> None:
    text = f"{sign * 20_000} It was Paris."
    assert grade_short_answer(text, ["Paris"], question="Who won?").label == "correct"
