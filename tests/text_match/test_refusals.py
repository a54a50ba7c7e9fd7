"""Answers that decline, in many languages; answers that only sound like it; and phrases of one's own."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragworth.text_match.refusals import PHRASE_KINDS, find_refusal, refusal_phrases

DECLINES = {
    "label": ["NO-RESPONSE", "N/A", "None.", "unanswerable", "Answer: unknown", '"Not mentioned."', "**No answer**"],
    "English": [
        "Not mentioned in the text",
        "I don't know",
        "I don’t know.",
        "No, I don't know",
        "The passages do not contain the answer.",
        "The provided passages don't contain any information about X.",
        "It cannot be determined from the context",
        "This question is unanswerable.",
        "I'm sorry, I can't help with that.",
        "I'm sorry, but I couldn't find any information on that.",
        "I cannot answer this question.",
        "Based on the context, there is no information about the height. The passages discuss other buildings.",
        "The question asks for a year. The passages discuss others. Therefore, I cannot determine it.",
        "None of the contexts mention Bad Wolf Bay.",
        "The height of St. Joseph's Church is not mentioned in the text.",
        "No, the answer is not present.",
        "There is not enough information to answer the question.",
        "I don't know. None of them answers it. However, they do mention several inventors.",
        "As an AI language model, I do not have access to real-time information.",
        "I am not sure.",
        "I'm not sure.",
        "No relevant documents were found.",
        "Unfortunately, the knowledge base doesn't cover this topic. Please contact support.",
        "I wasn't able to find anything about that in our help articles. You might want to contact us.",
        "Who was it?\n\nI don't know.",
        "The abstract says nothing about the boiling point.",
        "The text gives no date for the construction.",
        "This detail is absent from the article.",
        "The report leaves out the margin of victory.",
        "We would require the 2013 cash flow statement to answer this.",
        "More information is needed to determine the rate.",
        "I do not see a write-down in the material.",
        "I lack the context needed to answer.",
        "The number isn't reported in the section you shared.",
        "It is impossible to tell from these pages.",
        "The passages do not indicate how many there were.",
    ],
    "German": [
        "Ich weiß es nicht.",
        "Der Text enthält keine Informationen darüber.",
        "Das lässt sich nicht beantworten.",
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
        "Jag vet inte vem det var.",
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
    "These figures do not suggest a cyclical business.",
    "Three tranches do not include a covenant.",
    "The documents mention that existing definitions lack uniformity.",
    "40% of the corals did not recover.",
    "No.",
    "The context doesn't say directly, but it was Paris.",
    "The passages do not mention it explicitly. However, it was Paris.",
    "I don't know. But it may have been Paris.",
    "As an AI language model, I don't have access to real-time data. However, players stay on waivers for 24 hours.",
    "I'm not sure. It was Paris.",
    "Der Text sagt es nicht direkt, aber es war Paris.",
    "Le texte ne le dit pas, mais c'était Paris.",
    "文中没有直接说明，但是是巴黎。",
    "Paris. The passages do not mention its population.",
    "Yes, answer is present in context [1]. No, answer is not present in context [2].",
    "No one knows him better than his wife Mary.",
    "The unknown soldier",
    "The Unknown was painted in 1883.",
    "None but the Brave",
    "He did not know that the earth is round.",
    "It is not Berlin but Paris.",
    "Nicht Berlin, sondern Paris",
    "There are no states in the UK.",
    "Jag vet inte, däremot var det Paris.",
    "Not reported by Apple; analysts' results put it at 7 million.",
    "Not found in Europe; the text says Africa.",
    "Texten säger att kungen inte var svensk; han hette Olof.",
    "Jag vet inte säkert, men det är Göteborg.",
    "Jag vet inte – kanske Göteborg.",
    "Jag vet inte. Men det är nog Göteborg.",
    "Texten nämner inte Berlin; den säger Bonn.",
    "Det var Olof, men texten nämner inte året.",
    "Jeg ved det ikke helt, men det er Odense.",
    "Teksten siger at kongen ikke var dansk; han hed Olof.",
    "En tiedä varmasti, mutta se on Turku.",
    "Tekstissä ei ole epäilystä; kuningas oli Eerik.",
    "Nevím jistě, ale je to Brno.",
    "Text neuvádí Prahu; uvádí Brno.",
    "Nem tudom biztosan, de Szeged.",
    "Sajnos Budapest.",
    "Nu știu sigur, dar este Cluj.",
    "Nu există regi; informații despre Cuza sunt în text.",
    "Không có vua; thông tin nói về tổng thống Minh.",
    "Tidak ada raja; dokumen menyebut presiden Sukarno.",
    "Who sang Maaf?",
    "Maaf",
    "Δεν υπάρχει βασιλιάς· το κείμενο λέει Όθων.",
    "Δεν ξέρω σίγουρα, αλλά είναι η Πάτρα.",
    "לא המלך; המידע אומר דוד",
    "אני לא יודע בוודאות, אבל זה חיפה",
    "ไม่มีข้อสงสัย ข้อมูลระบุว่าเชียงใหม่",
    "Я не знаю точно, але це Львів.",
    "Не відомо як актор; це був Шевченко.",
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
        "Your contract doesn't mention this.",
        "There is nothing about this in the leaflet.",
        "The retrieved chunks don't cover this question.",
        "De polisvoorwaarden vermelden dit niet.",
        "Instrukcja nie podaje tej wartości.",
        "O manual não informa o valor.",
        "マニュアルには書かれていません。",
        "There's nothing in the documents about this.",
        "I do not have sufficient context to provide an answer.",
        "The context is about wine. No mention is made of capitals.",
        "The passages talk about wine. They do not include the requested information.",
        "My apologies, but the knowledge base has no entry on this topic.",
        "Hmm, the documents are silent on this point.",
        "This question is outside the scope of the provided documents.",
        "I'd need more information to answer this.",
        "Could you please clarify your question?",
        "The context only says that the firm is based in Berlin; its founding date is not given.",
        "I'm not able to give dosing advice; please speak to a pharmacist.",
        "The post-mortem doesn't state the cause.",
        "No download link is given in the passages.",
        "O contexto não informa o prazo.",
        "There's no headcount figure in the excerpt.",
        "The year of the fire isn't given.",
        "The context provided does not appear to be relevant to the question.",
        "Not enough info.",
        "We don't have any records on that.",
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
