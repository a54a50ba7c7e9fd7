"""Answers that decline, in many languages; answers that only sound like it; and phrases of one's own."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragworth.text_match.refusals import PHRASE_KINDS, find_refusal, refusal_phrases
from ragworth.text_match.short_answers import grade_short_answer

DECLINES = {
    "label": ["NO-RESPONSE", "N/A", "None.", "unanswerable", "Answer: unknown", '"Not mentioned."', "**No answer**"],
    "English": [
        "Not mentioned in the text",
        "I don't know",
        "The passages do not contain the answer.",
        "It cannot be determined from the context",
        "I'm sorry, I can't help with that.",
        "I'm sorry, but I couldn't find any information on that.",
        "Based on the context, there is no information about the height. The passages discuss other buildings.",
        "The height of St. Joseph's Church is not mentioned in the text.",
        "I don't know. None of them answers it. However, they do mention several inventors.",
        "I am not sure.",
        "I wasn't able to find anything about that in our help articles. You might want to contact us.",
        "This detail is absent from the article.",
        "We would require the 2013 cash flow statement to answer this.",
        "I lack the context needed to answer.",
        "The passages do not indicate how many there were.",
    ],
    "German": [
        "Ich weiß es nicht.",
        "Der Text enthält keine Informationen darüber.",
        "Das geht aus dem Kontext nicht hervor.",
    ],
    "French": ["Je ne sais pas.", "Le texte ne mentionne pas cette information."],
    "Spanish": ["No lo sé.", "El texto no menciona el año.", "No se puede determinar a partir del contexto."],
    "Italian": ["Non lo so.", "Il testo non contiene la risposta."],
    "Portuguese": ["Não sei.", "O texto não menciona isso."],
    "Dutch": ["Ik weet het niet.", "De tekst bevat geen informatie hierover."],
    "Russian": ["Я не знаю.", "В тексте не указано, когда это произошло.", "Невозможно определить по контексту."],
    "Polish": ["Nie wiem.", "Tekst nie zawiera informacji na ten temat."],
    "Turkish": ["Bilmiyorum ki.", "Metinde bu bilgi yer almıyor."],
    "Arabic": ["أنا لا أعرف.", "لا يحتوي النص على معلومات."],
    "Hindi": ["मुझे नहीं पता।", "संदर्भ में इसका उल्लेख नहीं है।"],
    "Chinese": ["我不知道。", "文中没有提到这个信息。", "无法根据上下文回答。"],
    "Japanese": ["わかりません。", "文章には情報がありません。", "その情報は記載されていません。"],
    "Korean": ["모르겠습니다.", "지문에 정보가 없습니다.", "알 수 없습니다."],
    "Swedish": [
        "Det vet jag inte.",
        "Tyvärr, texten innehåller ingen information om det.",
    ],
    "Danish": ["Det ved jeg ikke.", "Jeg vet ikke.", "Teksten nævner ikke kongens navn."],
    "Finnish": ["En tiedä.", "Asiakirjoissa ei mainita asiaa."],
    "Czech": ["Nevím.", "Text to neuvádí.", "Nevím, kdy to bylo."],
    "Hungarian": ["Nem tudom.", "Nincs elég információ."],
    "Romanian": ["Nu știu.", "Nu există informații despre asta."],
    "Vietnamese": ["Tôi không biết.", "Tài liệu không đề cập đến điều này."],
    "Indonesian": ["Saya tidak tahu.", "Tidak ada informasi tentang itu.", "Maaf, saya tidak tahu."],
    "Greek": ["Δεν ξέρω.", "Δεν υπάρχουν πληροφορίες."],
    "Hebrew": ["אני לא יודע", "אין מספיק מידע"],
    "Thai": ["ไม่ทราบ", "ไม่มีข้อมูล"],
    "Ukrainian": ["На жаль, неможливо відповісти.", "Недостатньо інформації."],
}

ANSWERS = [
    "Paris",
    "The results do not indicate a high growth company.",
    "The documents mention that existing definitions lack uniformity.",
    "No.",
    "The context doesn't say directly, but it was Paris.",
    "The passages do not mention it explicitly. However, it was Paris.",
    "I don't know. But it may have been Paris.",
    'Please respond with "Yes, answer is present" if any context answers, or "I don\'t know" if none does.',
    "As an AI language model, I don't have access to real-time data. However, players stay on waivers for 24 hours.",
    "I'm not sure. It was Paris.",
    "Der Text sagt es nicht direkt, aber es war Paris.",
    "Le texte ne le dit pas, mais c'était Paris.",
    "文中没有直接说明，但是是巴黎。",
    "Paris. The passages do not mention its population.",
    "Yes, answer is present in context [1]. No, answer is not present in context [2].",
    "None but the Brave",
    "It is not Berlin but Paris.",
    "There are no states in the UK.",
    "Jag vet inte, däremot var det Paris.",
    "Not reported by Apple; analysts' results put it at 7 million.",
    "Texten säger att kungen inte var svensk; han hette Olof.",
    "Jag vet inte säkert, men det är Göteborg.",
    "Jeg ved det ikke helt, men det er Odense.",
    "En tiedä varmasti, mutta se on Turku.",
    "Nevím jistě, ale je to Brno.",
    "Nem tudom biztosan, de Szeged.",
    "Nu știu sigur, dar este Cluj.",
    "Who sang Maaf?",
    "Δεν ξέρω σίγουρα, αλλά είναι η Πάτρα.",
    "אני לא יודע בוודאות, אבל זה חיפה",
    "Я не знаю точно, але це Львів.",
]


@pytest.mark.parametrize(
    ("language", "text"), [(language, text) for language, texts in DECLINES.items() for text in texts]
)
def test_declining(language: str, text: str) -> None:
    found = find_refusal(text)
    assert found is not None
    assert found.language in (language, "")
    assert found.phrase.casefold().replace("’", "'") in text.casefold().replace("’", "'")


@pytest.mark.parametrize("text", ANSWERS)
def test_answering(text: str) -> None:
    assert find_refusal(text) is None


@pytest.mark.parametrize("text", ["", "  \n", "…", "?!"])
def test_nothing_said(text: str) -> None:
    assert find_refusal(text) is None


def test_phrases_of_ones_own() -> None:
    assert find_refusal("Das geht uns nichts an.") is None
    assert find_refusal("Das geht  uns NICHTS an.", ["geht uns  nichts an"]) == ("geht  uns nichts an", "")
    assert find_refusal("PASS", ["pass"]) is not None
    assert find_refusal("The passenger", ["pass"]) is None
    assert find_refusal("PASS, but it was Paris", ["pass"]) is None
    assert find_refusal("Paris", [""]) is None


def test_the_table() -> None:
    table = refusal_phrases()
    assert len(table) == 28, "labels and 27 languages"
    for language in table:
        assert "{" not in "".join(language.labels)
        if language.name == "labels":
            continue
        assert {"declines", "but", "aside"} <= language.patterns.keys() <= {*PHRASE_KINDS}, language.name
        for pattern in language.patterns.values():
            assert not pattern.search("Paris, 5 June 1987"), language.name
            assert "{" not in pattern.pattern.replace("{0,60}", ""), "a name that is not listed"


@given(st.text(max_size=80))
def test_any_text(text: str) -> None:
    found = find_refusal(text)
    assert found is None or found.phrase
    assert find_refusal(f"I don't know.\n{text}.") is not None or text.strip()


@given(
    st.sampled_from([text for texts in DECLINES.values() for text in texts]), st.sampled_from(["", " ", "\n", "*", '"'])
)
def test_marks_and_blanks_around_do_not_matter(text: str, mark: str) -> None:
    assert find_refusal(f"{mark}{text}{mark}") is not None


@pytest.mark.parametrize(
    "text",
    [
        "The manuals do not state it.",
        "There is nothing about this in the leaflet.",
        "O manual não informa o valor.",
        "I do not have sufficient context to provide an answer.",
        "This question is outside the scope of the provided documents.",
        "I'd need more information to answer this.",
        "The context only says that the firm is based in Berlin; its founding date is not given.",
        "O contexto não informa o prazo.",
        "The context provided does not appear to be relevant to the question.",
        "Sorry, but this isn't something I can help with.",
        "Dazu finde ich im Text nichts.",
        "Although the documents do not state it, I would recommend contacting us.",
        "While the passages mention Lyon, they do not mention the capital.",
    ],
)
def test_manuals_and_contracts_that_do_not_say(text: str) -> None:
    assert find_refusal(text) is not None


@pytest.mark.parametrize(
    "text",
    [
        "The policy does not cover floods.",
        "The manual does not specify 45 Nm but 54 Nm.",
        "The warranty doesn't say 2 years; it says 3 years.",
        "De verzekering dekt dit niet.",
        "This is outside the scope of the warranty.",
        "The fee is not included.",
        "There is no swimming pool in the hotel.",
        "You need more information about the form before you file it.",
        "While I can't verify this from the documents, it is Paris.",
        "Obwohl der Text keine Angaben dazu enthält, ist es Paris.",
        "Paris. Could you clarify what else you need?",
    ],
)
def test_what_a_contract_excludes_is_an_answer(text: str) -> None:
    assert find_refusal(text) is None


REVENUE = "What was the net revenue in FY2022?"


@pytest.mark.parametrize(
    "answer",
    [
        "I'm sorry, but you haven't provided the statement for FY2022. Please share it.",
        "To calculate it, we would need:\n\n1. Sales of FY2022\n2. Assets\n\nThe excerpts only show 2017 ($7 million).",
        "Unfortunately, the context has no details on FY2022. It mentions 3 segments: Utilities, Trade and Energy.",
        "I couldn't find the revenue for FY2022. The passages cover:\n- Q1 2021: $4 million\n- Q2 2021: $5 million",
        "I'm afraid I can't answer that. The filing of 2022 isn't among the 10 documents I was given.",
        "Leider enthält der Text keine Angaben zum Umsatz 2022. Genannt werden nur 2018 (3,1 Mrd. €) und 2019.",
        "Les documents ne mentionnent pas le chiffre d'affaires de 2022 ; ils donnent ceux de 2018 et 2019.",
        "The excerpt fails to state FY2022; 2021 was $4.3 million.",
        "There was no FY2022 figure among the 12 tables.",
        "Data for this year is absent: only 2021 ($4.3 million) is shown.",
        "Regrettably the passages omit FY2022. In 2021 it was $4.3 million.",
    ],
)
def test_a_refusal_with_numbers_or_lists_is_not_wrong(answer: str) -> None:
    assert grade_short_answer(answer, ["$5.1 million"], question=REVENUE).label in ("abstained", "undecided")


@pytest.mark.parametrize(
    ("question", "answer"),
    [
        (REVENUE, "According to the report, it was $4.3 million."),
        ("Which table lists revenue?", "Table 2 does."),
        ("Did sales decline?", "Yes, the report shows a decline."),
    ],
)
def test_an_answer_from_a_source_may_be_wrong(question: str, answer: str) -> None:
    assert (
        grade_short_answer(answer, ["No" if question.startswith("Did") else "Note 4"], question=question).label
        == "wrong"
    )


@pytest.mark.parametrize(
    ("question", "accepted", "answer"),
    [
        ("What is the fee?", "25 euros", "Sorry for the delay: the fee is 25 euros."),
        ("What is the fee?", "25 euros", "Breakfast is not provided; the fee is 25 euros."),
        ("What did the minister say?", "that he was sorry", "The minister said that he was sorry."),
        ("What is the title of the song?", "Sorry", "The song is called Sorry."),
        ("Why was the claim denied?", "no receipt", "It was denied because the receipt was not provided."),
        ("What is covered?", "theft and fire", "Theft and fire are covered. Flood is not mentioned in the policy."),
        ("How many patients dropped out?", "12", "12 patients dropped out; reasons were not given for 3 of them."),
        ("What was the revenue?", "$4.2 billion", "$4.2 billion. The filing doesn't break out revenue by segment."),
        ("What happens without a receipt?", "no refund", "If you haven't provided a receipt, there is no refund."),
    ],
)
def test_regret_and_what_is_not_provided_do_not_decline_in_passing(question: str, accepted: str, answer: str) -> None:
    for each in (accepted, "Zanzibar"):
        assert grade_short_answer(answer, [each], question=question).label != "abstained"


def test_regret_beside_another_answer_does_not_decline() -> None:
    assert grade_short_answer("I'm sorry, it's Lyon.", ["Paris"]).label == "undecided"
    assert grade_short_answer("I'm sorry.", ["Paris"]).label == "abstained"
