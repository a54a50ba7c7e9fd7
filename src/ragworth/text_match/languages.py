"""Identify the language of a text, by its script and by common words."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable
from itertools import islice

from ragworth.core.errors import format_list

ENGLISH = "English"
COMMON_WORDS = {
    ENGLISH: "the of and to in is was for on that with by what which who how are does did when where it from at many "
    "a as no do an or be this have has not her his were they can could would should if you your their its than long "
    "much often old why between during after before under there been more most other one two",
    "German": "der die das und ist in von den mit zu wie was wer wann wo für auf im nicht eine ein des dem welche hat "
    "wird werden sind bei gibt es viele viel nach wenn mehr kann man einer einem einen sich auch aus über welcher "
    "welches warum wurde war am zum zur vor sein ihre",
    "French": "le la les de des et est dans du une un que qui quel quelle pour par sur en au combien quand où a été "
    "ce se il elle avec plus pas son sa ses sont aux quels quelles pourquoi comment peut faut fait cette ne l d",
    "Spanish": "el la los las de y es en del una un que qué quién cuál cuándo dónde para por con cuántos fue como se "
    "al su sus más no lo son cómo cuánto cuántas cuánta puede hay este esta desde hasta quiénes cuáles",
    "Italian": "il lo la gli di e è in del della una un che chi quale quando dove per con quanti sono come nel si da "
    "al alla sul sulla delle dei degli quali quanto quante quanta cosa non più ha può deve viene nella anche le i",
    "Portuguese": "o a os as de e é em do da uma um que quem qual quando onde para por com quantos foi como não no na "
    "ao dos das se mais quanto quantas quais pode são pelo pela seu sua",
    "Dutch": "de het een en is in van op met voor wat wie wanneer waar hoe niet te dat zijn werd welke aan er bij "
    "mag kan wordt worden naar uit ook als om heeft hoeveel waarom welk deze dit tijdens volgens nu",
    "Swedish": "och är i att det som en ett på för med av vad vem när var hur inte den till har om de vilka man måste "
    "många kan från blev vilken vilket varför vid där",
    "Danish or Norwegian": "og er i at det som en et på for med av af hva hvad hvem når hvor hvordan ikke den til har "
    "om de hvilke kan fra ble blev hvorfor mange man må ved der",
    "Finnish": "ja on ei se että kuka mikä mitä missä milloin miksi kuinka monta oli joka ovat ole mutta kun tai myös",
    "Polish": "i w na z jest się do nie że co kto kiedy gdzie jak od przez dla o był ile który jaki to po można "
    "czy są za przed było jaka jakie która które dlaczego ze",
    "Czech": "a v na je se z do ne že co kdo kdy kde jak od pro o byl kolik který jaký to po jsou jaká která které "
    "proč bylo před za při má",
    "Romanian": "și în de la cu pe un o este sunt care ce cine când unde cum pentru din nu mai cât câte câți a fost",
    "Hungarian": "a az és egy hogy nem ki mi mit mikor hol hány volt van miért hogyan melyik meg is el csak milyen",
    "Turkish": "ve bir bu için ile ne kim nasıl nerede kaç olan olarak da de mi hangi çok daha gibi kadar sonra niçin "
    "neden mıdır vardır oldu zaman hangisi",
}
WORD_SETS = {name: frozenset(words.split()) for name, words in COMMON_WORDS.items()}
SCRIPTS = {
    "CJK": "Chinese",
    "HIRAGANA": "Japanese",
    "KATAKANA": "Japanese",
    "HANGUL": "Korean",
    "CYRILLIC": "a Cyrillic script",
    "ARABIC": "Arabic",
    "DEVANAGARI": "Hindi",
    "GREEK": "Greek",
    "HEBREW": "Hebrew",
    "THAI": "Thai",
}
MAX_TEXTS = 500
"""Texts to look at: the others will be in the same languages."""
WORD = re.compile(r"[^\W\d_]+")


def identify_language(text: str) -> str:
    """The language of a text among those known here; empty if its words don't tell."""
    letters = [sign for sign in text[:2000] if sign.isalpha()]
    if not letters:
        return ""
    foreign = Counter(name for sign in letters if not sign.isascii() and (name := _script(sign)))
    if foreign and foreign.total() >= 0.4 * len(letters):
        japanese = foreign["Japanese"] >= 0.1 * foreign.total()
        return "Japanese" if japanese else foreign.most_common(1)[0][0]
    words = [word.casefold() for word in WORD.findall(text[:2000])]
    scores = {name: sum(word in known for word in words) for name, known in WORD_SETS.items()}
    (first, most), (_, second) = Counter(scores).most_common(2)
    return first if most >= 2 and most > second else ""


def _script(sign: str) -> str:
    return SCRIPTS.get(unicodedata.name(sign, "").split(" ")[0], "")


def foreign_languages(texts: Iterable[str]) -> str:
    """How many texts are in which other languages, such as ``8 of 10 in German``, if that is most; otherwise empty."""
    found = [name for text in islice(texts, MAX_TEXTS) if (name := identify_language(text))]
    foreign = Counter(name for name in found if name != ENGLISH)
    if 2 * foreign.total() <= len(found):
        return ""
    return f"{foreign.total():,} of {len(found):,} in {format_list([name for name, _ in foreign.most_common()], 3)}"
