"""Answers that share words with the accepted one and say something else, or share none and say the same.

A case is a question, an accepted answer and an answer. None of them may be graded the wrong way; where words can't
tell, the grade is undecided.
"""

from __future__ import annotations

import pytest

from ragworth.text_match.short_answers import grade_short_answer

CASE = ("question", "accepted", "answer")

OPPOSITE = [
    ("", "raised rates by 25 basis points", "It cut rates by 25 basis points."),
    ("", "less than 10 mg", "more than 10 mg"),
    ("", "at most 5", "at least 5"),
    ("", "no more than 3 tablets", "at least 3 tablets"),
    ("", "high blood pressure", "low blood pressure"),
    ("", "The left kidney was removed.", "The right kidney was removed."),
    ("", "Employees may not share passwords.", "Employees may share passwords."),
    ("", "may not share passwords", "may share passwords"),
    ("", "covers theft and fire, but not flood", "covers flood but not theft and fire"),
    ("", "The seller is liable, not the buyer.", "The buyer is liable, not the seller."),
    ("", "Plan A is cheaper than plan B.", "Plan B is cheaper than plan A."),
    (
        "",
        "Margins fell because of higher freight costs and a stronger dollar.",
        "Margins rose because of higher freight costs and a stronger dollar.",
    ),
    (
        "",
        "Margins fell because of higher freight costs and a stronger dollar.",
        "Margins fell because of lower freight costs and a weaker dollar.",
    ),
    ("", "2:1", "1:2"),
]
OTHER_THING = [
    ("", "Brazil won 2-0", "Germany won 2-0"),
    ("", "The tenant pays for repairs.", "The landlord pays for repairs."),
    ("", "Steve Jobs and Steve Wozniak", "It was Steve Jobs."),
    ("", "flour, sugar and eggs", "flour and sugar"),
    ("", "Feuer, Leitungswasser und Einbruch", "Feuer"),
    ("", "rouille et croûtons", "rouille"),
    ("", "hielo y sal", "hielo"),
    ("", "George W. Bush", "George H. W. Bush"),
    ("", "George H. W. Bush", "George W. Bush"),
    ("", "Paris, France", "Paris, Texas"),
    ("", "30 business days", "30 calendar days"),
]
OTHER_ROLE = [
    (
        "What was revenue in 2022?",
        "$4.2 billion",
        "Revenue was $3.9 billion in 2022, up from $4.2 billion in 2021.",
    ),
    (
        "What was net income in 2023?",
        "$12 million",
        "Net income rose to $15 million in 2023 from $12 million in 2022.",
    ),
    (
        "What is the total debt?",
        "$2.5 billion",
        "Total debt was $2.1 billion, compared with $2.5 billion a year earlier.",
    ),
    ("Who is the CEO of Google?", "Tim Cook", "Tim Cook is not the CEO; it is Sundar Pichai."),
    ("What is the capital?", "Canberra", "It used to be Canberra; now it's Melbourne."),
    ("Which segment grew?", "Cloud", "Every segment except Cloud grew."),
    ("Which country withdrew?", "Norway", "All countries but Norway withdrew."),
]


@pytest.mark.parametrize(CASE, [*OPPOSITE, *OTHER_THING, *OTHER_ROLE])
def test_shared_words_are_not_the_answer(question: str, accepted: str, answer: str) -> None:
    assert grade_short_answer(answer, [accepted], question=question).label == "undecided"


SAME_FACTS = [
    ("Who won?", "Barack Obama", "It was Barack Obama, not John McCain."),
    ("What was net income in 2023?", "$15 million", "It was $15 million in 2023, versus $12 million in 2022."),
    ("What was the former capital?", "Bonn", "It was formerly Bonn."),
    ("Which country did not sign?", "Norway", "Every country except Norway signed."),
    ("", "George W. Bush", "President George W. Bush"),
    ("", "Hugh S. Johnson", "Hugh Samuel Johnson"),
    ("", "Phoenix Mills Limited", "Phoenix Mills Ltd"),
    ("", "Carol Ann Susi", "She was played by Carol Ann Susi1."),
    ("", "Paris, France", "Paris"),
    ("", "flour, sugar and eggs", "eggs, flour and sugar"),
    ("", "Feuer, Leitungswasser und Einbruch", "Einbruch, Feuer und Leitungswasser"),
    ("", "rouille et croûtons", "croutons et rouille"),
    ("", "more than 10 mg", "over 10 mg"),
    ("", "at least 5", "no less than 5"),
    ("", "2:1", "They won 2:1."),
    ("", "30 business days", "30 days"),
]


@pytest.mark.parametrize(CASE, SAME_FACTS)
def test_the_same_in_a_similar_form_is_correct(question: str, accepted: str, answer: str) -> None:
    assert grade_short_answer(answer, [accepted], question=question).label == "correct"


OTHER_FORM = [
    ("", "March 3, 2021", "3/3/2021"),
    ("", "5,730 years", "5730 ± 40 years"),
    ("", "78.4 °C", "351.5 K"),
    ("", "15 million °C", "15 million degrees"),
    ("", "90 minutes", "an hour and a half"),
    ("", "90 minutes", "one and a half hours"),
    ("", "2.5 million", "two and a half million"),
    ("", "12.5%", "About one eighth of it."),
    ("", "1/3", "a third"),
    ("", "10:30", "10:30 am"),
    ("", "€1.234,56", "1234.56 euros"),
    ("", "₹5 crore", "50 million rupees"),
    ("", "Q3", "In the third quarter."),
    ("", "Henry VIII", "Henry the Eighth"),
    ("", "Henry the Eighth", "Henry VIII"),
    ("", "München", "Muenchen"),
    ("", "Koeln", "Köln"),
    ("", "hemoglobin", "Haemoglobin carries it."),
    ("", "organisational behaviour", "Organizational behavior"),
    ("", "the United States", "The USA has the largest economy."),
    ("", "UK", "the United Kingdom"),
    ("", "WHO", "the World Health Organization"),
    ("", "Ernest Hemingway", "E. Hemingway wrote it."),
    ("", "Pyotr Ilyich Tchaikovsky", "P. I. Tchaikovsky"),
    ("", "Felis catus", "F. catus"),
    ("", "daily", "once a day"),
    ("", "午後3時", "15時に始まります。"),
    ("", "15:00", "下午3点"),
    ("", "两年", "2年"),
    ("", "every 12 hours", "Take it twice a day."),
    ("", "quarterly", "every three months"),
    ("How many incidents were there?", "0", "There were no incidents."),
    ("How many moons does it have?", "0", "It does not have any moons."),
    ("How many moons does it have?", "0", "None"),
    ("How many siblings?", "none", "0"),
    ("", "1998", "in nineteen ninety-eight"),
    ("", "2024", "twenty twenty-four"),
    ("", "9:00 AM", "at nine o'clock in the morning"),
    ("", "25 days", "5 weeks (25 working days)"),
    ("", "29,99 €", "29€99"),
    ("", "330 metri", "È alta 330 m."),
    ("", "3776メートル", "3,776mです。"),
    ("", "12%", "um 12 Prozent"),
    ("", "12 %", "un 12 por ciento"),
    ("", "1,9 Millionen", "ca. 1,9 Mio. Einwohner"),
]


@pytest.mark.parametrize(CASE, OTHER_FORM)
def test_the_same_in_another_form_is_correct(question: str, accepted: str, answer: str) -> None:
    assert grade_short_answer(answer, [accepted], question=question).label == "correct"


MAYBE_THE_SAME = [
    ("", "September 4, 1998", "04/09/1998"),
    ("", "September 4, 1998", "9/4/1998"),
    ("", "Headcount fell from 500 to 450.", "Headcount dropped by 50, to 450."),
    ("When does it open?", "3 pm", "15:00"),
    ("When does it open?", "9:00", "9 am"),
    ("How many incidents were there?", "0", "There were no injuries."),
    ("", "Python 3.10", "It came with 3.10.2."),
    ("", "1998", "It was founded in '98."),
    ("", "$4.2 billion", "4.200 Millionen Dollar"),
    ("", "9:30", "9h30"),
    ("", "Tucson, Arizona", "Arizona"),
    ("", "drei Monate zum Quartalsende", "ein Monat zum Quartalsende"),
    ("Is it larger than the old one?", "Yes", "The old one is larger than it."),
    ("Who won?", "No one", "Nobody won."),
    ("", "New York City", "NYC"),
]


@pytest.mark.parametrize(CASE, MAYBE_THE_SAME)
def test_what_may_be_the_same_is_undecided(question: str, accepted: str, answer: str) -> None:
    assert grade_short_answer(answer, [accepted], question=question).label == "undecided"


@pytest.mark.parametrize(
    ("accepted", "answer"),
    [
        ("5 April 2020", "04/06/2020"),
        ("15 March 2020", "03/15/2021"),
        ("3 pm", "16:00"),
        ("Q3", "Q4"),
        ("Henry VIII", "Henry the Seventh"),
        ("₹5 crore", "₹5 lakh"),
        ("50 °C", "50 K"),
        ("0", "There were 3 incidents."),
        ("New York City", "LA"),
        ("drei Monate zum Quartalsende", "sechs Monate zum Quartalsende"),
        ("deux semaines après réception", "trois semaines après réception"),
        ("the United States", "They told us."),
        ("Ernest Hemingway", "F. Scott Fitzgerald"),
        ("daily", "twice daily"),
        ("once a week", "every two weeks"),
        ("$4.2 billion", "$4.2 million"),
        ("$4 billion", "$4 million"),
        ("1998", "nineteen eighty-nine"),
        ("29,99 €", "39€99"),
        ("330 metri", "300 m"),
    ],
)
def test_another_quantity_or_name_stays_wrong(accepted: str, answer: str) -> None:
    assert grade_short_answer(answer, [accepted]).label == "wrong"


@pytest.mark.parametrize(
    ("question", "answer", "says"),
    [
        ("Are refunds allowed?", "Refunds are prohibited.", "no"),
        ("Are refunds allowed?", "Refunds are forbidden.", "no"),
        ("Was the merger approved?", "The merger was rejected.", "no"),
        ("Was the merger approved?", "The merger was blocked by the regulator.", "no"),
        ("Did the firm miss guidance?", "The firm met its guidance.", "no"),
        ("Is the contract renewable?", "The contract is non-renewable.", "no"),
        ("Is the drug safe?", "No problem, it is safe.", "yes"),
        ("Can employees carry over leave?", "Leave cannot be carried over.", "no"),
        ("Does the warranty cover water damage?", "Water damage is covered by the warranty.", "yes"),
        ("Does the warranty cover water damage?", "Unfortunately, water damage isn't covered.", "no"),
        ("Is it a planet?", "Not anymore. It was reclassified.", "no"),
        ("Did revenue increase?", "It did.", "yes"),
        ("Did revenue increase?", "It didn't; it fell by 3%.", "no"),
        ("Is the new office larger than the old one?", "The old office is larger than the new one.", ""),
        ("Did sales decline?", "Sales fell sharply.", "yes"),
        ("Was the bill passed?", "The bill was defeated.", ""),
        ("Was the merger approved?", "The merger was not completed.", ""),
        ("Are dogs allowed?", "Only guide dogs are allowed.", ""),
        ("Can employees work remotely?", "Employees must work on site.", ""),
    ],
)
def test_yes_or_no_needs_the_predicate_of_the_question(question: str, answer: str, says: str) -> None:
    for accepted in ("Yes", "No"):
        expected = "undecided" if not says else "correct" if accepted.lower() == says else "wrong"
        assert grade_short_answer(answer, [accepted], question=question).label == expected


@pytest.mark.parametrize(
    ("accepted", "answer", "label"),
    [
        ("true", "Yes", "correct"),
        ("True", "The statement is true.", "correct"),
        ("false", "No.", "correct"),
        ("false", "Yes", "wrong"),
        ("Yes", "That is false.", "wrong"),
        ("No, it is unsafe.", "No problem, it is safe.", "wrong"),
    ],
)
def test_true_and_false_say_yes_and_no(accepted: str, answer: str, label: str) -> None:
    assert grade_short_answer(answer, [accepted], question="Is the drug safe?").label == label


@pytest.mark.parametrize("answer", ["Das steht nicht in den Dokumenten.", "No encontré esa información."])
def test_refusals_in_german_and_spanish(answer: str) -> None:
    assert grade_short_answer(answer, ["München"]).label == "abstained"


NOT_GIVEN = [
    ("Which colours?", "red; green; blue", "red; green; yellow"),
    ("What torque?", "45 lb-ft", "45 Nm"),
    ("What speed?", "5 Gbps", "5 Mbps"),
    ("What speed?", "5 Mb/s", "5 MB/s"),
    ("Ile kosztuje?", "300 €", "300 zł"),
    ("Quanto custa?", "R$ 300", "$ 300"),
    ("Hoe lang?", "20 weken", "20 dagen"),
    ("どのくらい？", "20週間", "20日"),
    ("How much?", "2 tsp", "2 tbsp"),
    ("What current?", "12 A", "12 V"),
    ("Which vitamin?", "vitamin A", "vitamin K"),
    ("Which blood type?", "blood type AB", "blood type A"),
    ("Is it covered?", "Yes", "Yes, it is covered. Actually no, it is not covered."),
    ("Is het gedekt?", "Ja", "Ja, dat is gedekt. Of nee, toch niet."),
    ("含まれますか？", "はい", "はい。いいえ、違います。"),
    ("What torque?", "45 Nm", "It is 45 Nm. Sorry, I meant 54 Nm."),
    ("Which city?", "Paris", "It could be Paris or Lyon."),
    ("How long?", "15 minutes", "10-15 minutes"),
    ("How heavy?", "at least 5 kg", "5 kg or less"),
    ("Jak długo?", "najwyżej 10 dni", "co najmniej 10 dni"),
    ("どのくらい？", "10日以下", "10日以上"),
    ("Does it?", "It includes roaming.", "It does not include roaming."),
    ("Which nut?", "peanuts", "no peanuts"),
    ("Met wat?", "eieren", "zonder eieren"),
    ("What is in it?", "gluten", "gluten-free"),
    ("対応？", "対応", "非対応"),
    ("Quando?", "um mês antes da renovação", "um mês depois da renovação"),
    ("いつ？", "更新日の1か月前", "更新日の1か月後"),
    ("When?", "Christmas", "the day after Christmas"),
    ("Ile?", "300 miliardów", "300 milionów"),
    ("How much?", "US$ 500", "A$ 500"),
    ("How many patients took part?", "120 patients", "It took 120 hours."),
    ("How many employees are there?", "120 employees", "It has 120 customers."),
    ("What's the capital?", "Canberra", "Many think it's Canberra, but the capital is actually Sydney."),
    ("What caused it?", "a full disk", "It was first blamed on a full disk, but the real cause was the network."),
    ("Which city?", "Paris", "Paris. Actually, correction: it's Lyon."),
    ("Which city?", "Paris", "Paris, no wait, Lyon."),
    ("Which city?", "Paris", "Paris is incorrect; it is Lyon."),
    ("Which country is the largest?", "India", "China, followed by India"),
    ("Who was the president?", "John Adams", "Thomas Jefferson, who succeeded John Adams"),
    ("Who is the head?", "Dr. Ann Lee", "The former head was Ann Lee; the current one is Bo Park."),
    ("How many days of leave?", "25 days", "It was 25 days until 2020; it is now 28 days."),
    ("How much is the fee?", "$25", "The fee is $35, raised from $25."),
    ("How much leave do full-time staff get?", "25 days", "Part-time staff get 25 days; full-time staff get 30 days."),
    ("When was the company founded?", "1998", "1998 was the year of its IPO; it was founded in 1994."),
    ("What was the growth in revenue?", "12%", "Revenue fell by 12%."),
    ("Who won, Germany or Brazil?", "Germany", "Brazil beat Germany 7-1."),
    ("Who won, Germany or Brazil?", "Germany", "Germany lost."),
    ("Which is longer, the Nile or the Amazon?", "the Nile", "The Amazon is longer than the Nile."),
    ("Which option is right?", "B", "C. B is wrong because nitrogen is inert."),
    ("Which country?", "US", "Because of that, it is not the US."),
    ("What is the rate?", "3.5% p.a.", "3.5% per month"),
    ("Which city?", "Lyon", "Neither Lyon nor Nice; it's Paris."),
    ("Which city?", "Lyon", "The city is Paris, although some sources claim Lyon."),
    ("Which city?", "Lyon", "I would have said Lyon, but the passage clearly states Paris."),
    ("Where is it?", "Lyon", "It moved from Lyon to Paris in 1850."),
    ("Which airline?", "Lufthansa", "Swiss, a subsidiary of Lufthansa"),
    ("Who directed it?", "Ann Lee", "Bo Park, a friend of Ann Lee"),
    ("Which city?", "Lyon", "Paris, which is north of Lyon"),
    ("What is the rate?", "20%", "20%... no, 28%"),
    ("What is the minimum length?", "12 characters", "at most 12 characters"),
    ("Which section?", "Section 1.1", "Section 1.11"),
    ("Which cells?", "white blood cells", "It affects the red blood cells."),
    ("Which role?", "chief financial officer", "The chief executive officer"),
    ("Which margin?", "gross profit margin", "net profit margin"),
    ("When does it expire?", "31 May 2025", "The contract starts on 31 May 2025 and expires on 31 May 2027."),
    ("What is the monthly fee?", "$25", "$25 per year"),
    ("What is the notice period?", "30 days' notice", "Thirty (30) business hours"),
    ("What is the derivative?", "2x", "2x^2"),
    ("Who wrote it?", "George H. W. Bush", "George W. Bush"),
    ("Is the new office larger than the old one?", "Yes", "The old office is larger than the new one."),
    ("In which state is it?", "the U.S. state of Ohio", "It is somewhere in the United States."),
]

STILL_GIVEN = [
    ("Which city?", "Paris", "I think it is Paris, but I'm not sure."),
    ("What was it called first?", "Burma", "It was initially called Burma, but the name was later changed."),
    ("Which city?", "Paris", "Paris is followed by Lyon in size."),
    ("Where is brisket from?", "the breast", "Brisket is cut from the breast."),
    ("How many days of leave?", "25 days", "Staff get 25 days; they were 22 days before."),
    ("How many days of leave?", "25 days", "25 days. Staff also get 8 days of leave for training."),
    ("How much leave do full-time staff get?", "30 days", "Part-time staff get 25 days; full-time staff get 30 days."),
    ("How far did revenue fall?", "12%", "Revenue fell by 12%."),
    ("What was the growth in revenue?", "12%", "Revenue grew by 12% after a fall."),
    ("Who won, Germany or Brazil?", "Germany", "Germany beat Brazil 7-1."),
    ("Which is longer, the Nile or the Amazon?", "the Nile", "The Nile is longer than the Amazon."),
    ("Is it cut to the left or right?", "right", "It is cut to the right."),
    ("Which option is right?", "B", "B) nitrogen. C is wrong because argon is rare."),
    ("Which option is right?", "B", "A: B"),
    ("How much, in USD millions?", "$1577.00", "It was $1,577 million."),
    ("What is the monthly fee?", "$25", "It is $25 a month."),
    ("What is the annual fee?", "$25", "The fee is $25 p.a."),
    ("How many people use it each day?", "500 people", "About 500 people use it every day."),
    ("Where is it?", "Cambridge, Massachusetts", "Cambridge"),
    ("Where do the rivers meet?", "Cairo, Illinois", "They meet directly south of Cairo, Illinois."),
    ("Where did it move from?", "Lyon", "It moved from Lyon to Paris."),
    ("Who is her father?", "Bo Park", "She is the daughter of Bo Park."),
    ("Which airline owns it?", "Lufthansa", "Swiss is a subsidiary of Lufthansa."),
    ("What is the minimum length?", "12 characters", "It has at least 12 characters."),
    ("What is the minimum length?", "12 characters", "The minimum is 12 characters, the maximum 64."),
    ("What is it?", "a virtual reality simulator", "A virtual reality world"),
    ("Which section?", "Section 1.1", "Section 1.1 (see also Section 1.11)"),
]


@pytest.mark.parametrize(CASE, STILL_GIVEN)
def test_corrections_and_rivals_of_other_things_change_nothing(question: str, accepted: str, answer: str) -> None:
    assert grade_short_answer(answer, [accepted], question=question).label == "correct"


@pytest.mark.parametrize(CASE, NOT_GIVEN)
def test_other_units_bounds_and_corrections_are_not_correct(question: str, accepted: str, answer: str) -> None:
    assert grade_short_answer(answer, [accepted], question=question).label in ("wrong", "undecided")


@pytest.mark.parametrize(
    CASE,
    [
        ("What speed?", "5 Gbps", "5000 Mbps"),
        ("Hoe lang?", "14 dagen", "2 weken"),
        ("Quanto custa?", "300 reais", "R$ 300"),
        ("What share?", "1/4", "one quarter"),
        ("Which war?", "World War II", "the Second World War"),
        ("Which vitamin?", "Vitamin A", "It is vitamin A."),
        ("Which song?", "With a Little Help", "With A Little Help"),
        ("Is it covered?", "Yes", "Yes. No extra fee applies."),
        ("How many?", "291 episodes", "There are 291 in total."),
        ("Which city?", "Paris", "There is no doubt: Paris."),
        ("Which city?", "Paris", "Paris. Actually, it has been the capital since 987."),
        ("Where does it flow?", "Paris", "Paris. Is it the longest river? No."),
        ("Which symphony?", "5", "It is Symphony No 5."),
        ("Onde fica?", "Brasil", "Fica no Brasil."),
        ("What should be avoided?", "alcohol", "Take it with no alcohol."),
        ("After which holiday?", "Christmas", "It's the day after Christmas."),
        ("How can one pay?", "by card", "Payment may be made by card or in cash."),
        ("What dose?", "500 mg", "500 mg 3 times a day"),
        ("What dose?", "5 mg", "5mg once daily"),
        ("When did he play?", "from 1952 until 1953", "He played in 1952-1953."),
        ("How many patients took part?", "120 patients", "120 people took part."),
        ("How much in Canada?", "$500", "C$500"),
        ("How much?", "R$ 300", "300 reais"),
        ("How much?", "300 NOK", "300 Norwegian kroner"),
        ("What speed?", "100 Mbps", "100 megabits per second"),
        ("How many calories?", "250 calories", "250 kcal"),
        ("Which shares?", "Class A", "Class A Common Stock"),
        ("Which segments?", "three segments: Cloud; Devices; Services", "Cloud, devices, and services"),
        ("Does the contract state a date?", "No", "The contract does not state a date."),
        ("What does the contract not state?", "the delivery date", "The contract does not state the delivery date."),
    ],
)
def test_the_same_in_other_units_and_words(question: str, accepted: str, answer: str) -> None:
    assert grade_short_answer(answer, [accepted], question=question).label == "correct"


@pytest.mark.parametrize(
    CASE,
    [
        ("Who?", "European Union Aviation Safety Agency", "EASA"),
        ("What?", "deoxyribonucleic acid", "DNA"),
        ("When?", "5 March 2021", "5/3/21"),
        ("いつ？", "2021-03-05", "令和3年3月5日"),
        ("Which country?", "Ghana", "ガーナ"),
    ],
)
def test_short_forms_and_other_scripts_are_undecided(question: str, accepted: str, answer: str) -> None:
    assert grade_short_answer(answer, [accepted], question=question).label == "undecided"


def test_another_acronym_or_date_is_wrong() -> None:
    assert grade_short_answer("FAA", ["European Union Aviation Safety Agency"]).label == "wrong"
    assert grade_short_answer("6/4/21", ["5 March 2021"]).label == "wrong"
