"""Number words, dates and refusals in other languages."""

from __future__ import annotations

import pytest

from ragworth.text_match.dates import _ENGLISH, _OTHERS, FOREIGN_MONTHS
from ragworth.text_match.foreign_numbers import with_digits
from ragworth.text_match.short_answers import grade_short_answer
from ragworth.text_match.spelling import canonical_words


@pytest.mark.parametrize(
    ("text", "digits"),
    [
        *[("zwölf", "12"), ("einundzwanzig", "21"), ("tweeëntwintig", "22"), ("vingt et un", "21")],
        *[
            ("quatre-vingt-dix-neuf", "99"),
            ("soixante-quinze", "75"),
            ("veintidós", "22"),
            ("treinta y dos", "32"),
        ],
        *[("ventotto", "28"), ("vinte e um", "21"), ("dwadzieścia jeden", "21"), ("on iki", "12"), ("yirmi bir", "21")],
        *[("двадцать один", "21"), ("اثنا عشر", "12"), ("बारह", "12"), ("十二人", "12人"), ("3万円", "30000円")],
        *[("二千二十年", "2020年"), ("三菱", "三菱"), ("千葉県", "千葉県"), ("drei Millionen", "3 million")],
        *[("un milliard", "1 billion"), ("a dozen", "12"), ("½", "0.5"), ("DOS", "DOS"), ("Sept. 5", "Sept. 5")],
        ("It was once due on the elf.", "It was once due on the elf."),
    ],
)
def test_number_words_of_other_languages(text: str, digits: str) -> None:
    assert with_digits(text).likely == digits


@pytest.mark.parametrize(
    ("text", "accepted", "label"),
    [
        ("ciento doce", "12", "undecided"),
        ("двести двадцать", "20", "undecided"),
        ("deux cents", "2", "undecided"),
        ("drei Millionen zweihunderttausend", "3 million", "undecided"),
        ("dos mil", "2000", "correct"),
        ("dos mil", "2", "wrong"),
        ("Otto von Bismarck", "8", "undecided"),
        ("The army was to seize power.", "16", "undecided"),
        ("otto", "8", "correct"),
        ("sept personnes", "7", "correct"),
        ("half a dozen", "12", "wrong"),
        ("It costs six cents.", "7", "wrong"),
        ("万", "0", "wrong"),
        ("人口は3万人です", "3", "wrong"),
        ("人口は3万人です", "3万人", "correct"),
        ("3 тысячи", "3", "wrong"),
        ("Elle est née le huit mai 1912.", "7 May 1912", "undecided"),
    ],
)
def test_a_part_of_a_number_and_a_word_that_may_be_a_name_are_not_the_answer(
    text: str, accepted: str, label: str
) -> None:
    assert grade_short_answer(text, [accepted]).label == label


@pytest.mark.parametrize(
    ("text", "accepted", "label"),
    [
        ("Der Turm hat zwölf Stockwerke.", "12", "correct"),
        ("dreizehn", "12", "wrong"),
        ("12", "zwölf", "correct"),
        ("3 мая 1912 года", "1912-05-03", "correct"),
        ("5 мая 1912 года", "1912-05-03", "wrong"),
        ("16 Mart 2020", "2020-03-15", "wrong"),
        ("15 marca 2020", "2020-03-15", "correct"),
        ("3. listopada 2020.", "3 October 2020", "undecided"),
        ("I'm unable to help with that request.", "Ann", "abstained"),
        ("Je n'ai pas trouvé cette information dans les documents fournis.", "Lyon", "abstained"),
        ("Информация не найдена.", "3", "abstained"),
        ("Flood damage is not covered by the policy.", "it is not covered", "undecided"),
    ],
)
def test_grades_in_other_languages(text: str, accepted: str, label: str) -> None:
    assert grade_short_answer(text, [accepted]).label == label


def test_names_of_months_are_spelled_as_the_grader_reads_them() -> None:
    for names in _OTHERS:
        for name, english in zip(names.split(), _ENGLISH, strict=True):
            if name == "-":
                continue
            assert FOREIGN_MONTHS[name.casefold()] == english
            assert canonical_words(f"5 {name} 2020") == ("2020", english, "day5")


def test_a_date_with_a_month_in_an_unknown_language_is_no_coarser_date() -> None:
    assert grade_short_answer("16 Machi 2020", ["15 March 2020"]).label != "correct"
