"""``language``: the question is in the language of its passages, by script and by common words."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from dataclasses import dataclass
from typing import ClassVar

from ragworth.build.checks.contract import Check, CheckFinding, Evidence
from ragworth.build.question_set import Question

ENGLISH = "English"
COMMON_WORDS = {
    ENGLISH: "the of and to in is was for on that with by what which who how are does did when where it from at many "
    "a as no do an or be this have has not her his were they",
    "German": "der die das und ist in von den mit zu wie was wer wann wo für auf im nicht eine ein des dem welche hat",
    "French": "le la les de des et est dans du une un que qui quel quelle pour par sur en au combien quand où a été",
    "Spanish": "el la los las de y es en del una un que qué quién cuál cuándo dónde para por con cuántos fue como se",
    "Italian": "il lo la gli di e è in del della una un che chi quale quando dove per con quanti sono come nel si da",
    "Portuguese": "o a os as de e é em do da uma um que quem qual quando onde para por com quantos foi como não no na",
    "Dutch": "de het een en is in van op met voor wat wie wanneer waar hoe niet te dat zijn werd welke aan er bij",
    "Swedish": "och är i att det som en ett på för med av vad vem när var hur inte den till har om de vilka",
    "Polish": "i w na z jest się do nie że co kto kiedy gdzie jak od przez dla o był ile który jaki to po",
    "Turkish": "ve bir bu için ile ne kim nasıl nerede kaç olan olarak da de mi hangi çok daha gibi",
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
WORD = re.compile(r"[^\W\d_]+")


@dataclass(frozen=True)
class SameLanguage(Check):
    """1 if the question is in the language of one of its passages, 0 if not. Too few words to tell is unknown."""

    name: ClassVar[str] = "language"
    title: ClassVar[str] = "in the language of its passages"
    measures: ClassVar[str] = "1 if the languages are the same"

    def find(self, question: Question, evidence: Evidence) -> CheckFinding:
        texts = evidence.questions.known_texts(question)
        if not texts:
            texts = list(evidence.questions.texts.values())[:20]  # an unanswerable question: that of the corpus
        asked = identify_language(question.standalone)
        languages = Counter(filter(None, map(identify_language, texts)))
        if not asked or not languages:
            return CheckFinding("unknown", None, f"too few words to identify the language of the {_unclear(asked)}")
        if asked not in languages:
            known = languages.most_common(1)[0][0]
            return CheckFinding("fail", 0.0, f"the question is in {asked}, the passages are in {known}")
        return CheckFinding("pass", 1.0)


def _unclear(asked: str) -> str:
    return "passages" if asked else "question"


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
