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
    "a as no do an or be this have has not her his were they can could would should if you your their its than",
    "German": "der die das und ist in von den mit zu wie was wer wann wo für auf im nicht eine ein des dem welche hat "
    "wird werden sind bei gibt es viele nach wenn mehr kann man einer sich auch aus über warum wurde war am zum zur",
    "French": "le la les de des et est dans du une un que qui quel quelle pour par sur en au combien quand où a été "
    "ce se il elle avec plus pas son sa ses sont aux quels quelles pourquoi comment peut cette ne l d",
    "Spanish": "el la los las de y es en del una un que qué quién cuál cuándo dónde para por con cuántos fue como se "
    "al su sus más no lo son cómo cuánto cuántas puede hay este esta desde",
    "Italian": "il lo la gli di e è in del della una un che chi quale quando dove per con quanti sono come nel si da "
    "al alla sul sulla delle dei degli quali quanto quante cosa non più ha può deve viene nella anche le i",
    "Portuguese": "o a os as de e é em do da uma um que quem qual quando onde para por com quantos foi como não no na "
    "ao dos das se mais quanto quantas quais pode são pelo pela seu sua",
    "Dutch": "de het een en is in van op met voor wat wie wanneer waar hoe niet te dat zijn werd welke aan er bij "
    "mag kan wordt worden naar uit ook als om heeft hoeveel waarom welk deze dit",
    "Swedish": "och är i att det som en ett på för med av vad vem när var hur inte den till har om de vilka man kan",
    "Polish": "i w na z jest się do nie że co kto kiedy gdzie jak od przez dla o był ile który jaki to po można czy są",
    "Turkish": "ve bir bu için ile ne kim nasıl nerede kaç olan olarak da de mi hangi çok daha gibi kadar sonra neden",
}
WORD_SETS = {name: frozenset(words.split()) for name, words in COMMON_WORDS.items()}
SCRIPTS = {"CJK": "Chinese", "HIRAGANA": "Japanese", "KATAKANA": "Japanese", "CYRILLIC": "a Cyrillic script"}
SCRIPTS |= {name.upper(): name for name in ("Arabic", "Greek", "Hebrew", "Thai")}
SCRIPTS |= {"HANGUL": "Korean", "DEVANAGARI": "Hindi"}
MAX_TEXTS, MAX_CHARACTERS = 500, 2000
"""Texts, and characters of each, to look at: the others will be in the same languages."""
WORD = re.compile(r"[^\W\d_]+")


def identify_language(text: str) -> str:
    """Return the language of a text among those known here; empty if its words don't tell."""
    letters = [sign for sign in text[:MAX_CHARACTERS] if sign.isalpha()]
    foreign = Counter(name for sign in letters if not sign.isascii() and (name := _script(sign)))
    if foreign and foreign.total() >= 0.4 * len(letters):
        japanese = foreign["Japanese"] >= 0.1 * foreign.total()
        return "Japanese" if japanese else foreign.most_common(1)[0][0]
    words = [word.casefold() for word in WORD.findall(text[:MAX_CHARACTERS])]
    scores = Counter({name: sum(word in known for word in words) for name, known in WORD_SETS.items()})
    (first, most), (_, second) = scores.most_common(2)
    return first if most >= 2 and most > second else ""


def _script(sign: str) -> str:
    return SCRIPTS.get(unicodedata.name(sign, "").split(" ")[0], "")


def foreign_languages(texts: Iterable[str]) -> str:
    """Say how many texts are in which other languages, ``8 of 10 in German``, if that is most; otherwise empty."""
    languages = [name for text in islice(texts, MAX_TEXTS) if (name := identify_language(text))]
    foreign = Counter(name for name in languages if name != ENGLISH)
    if 2 * foreign.total() <= len(languages):
        return ""
    return f"{foreign.total():,} of {len(languages):,} in {format_list([name for name, _ in foreign.most_common()], 3)}"
