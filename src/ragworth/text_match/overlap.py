"""Overlap of a text with accepted answers, from 0 to 1: exact match, token F1, containment, ROUGE-L.

Each function returns the best over the accepted answers. With their default tokens, exact match and F1 equal the
official SQuAD 1.1 evaluation on every text in Latin script, and ROUGE-L is the F-measure of the package
``rouge-score`` without stemming on every text. Extensions are marked **Choice**.
"""

from __future__ import annotations

import re
import string
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache, partial
from typing import Literal, NamedTuple

from ragworth.core.errors import InputError, quote_short

TokenScheme = Literal["words", "squad"]
"""Tokens of EM, F1 and containment: SQuAD's, or with words also in scripts without blanks."""

RougeTokenScheme = Literal["rouge", "unicode"]
"""Tokens of ROUGE-L: runs of a-z and 0-9, or those of F1."""

# Scripts written without blanks between words, as ranges of a character class.
SCRIPTS_WITHOUT_SPACES = (
    "\u0e00-\u0eff"  # Thai, Lao
    "\u1000-\u109f\u1780-\u17ff"  # Burmese, Khmer
    "\u3005-\u3007\u3040-\u30fa\u30fc-\u30ff\u31f0-\u31ff"  # kana, iteration and length marks
    "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"  # Han
)

_ARTICLES = re.compile(r"\b(a|an|the)\b")
_NO_PUNCTUATION = dict.fromkeys(map(ord, string.punctuation))
_ROUGE_BREAKS = re.compile(r"[^a-z0-9]+")
_SPACELESS_CHARACTER = re.compile(rf"[{SCRIPTS_WITHOUT_SPACES}]")


def squad_normalise(text: str) -> str:
    """Normalize ``text`` like SQuAD: lower case, no ASCII punctuation, no English articles, single blanks."""
    return " ".join(_ARTICLES.sub(" ", text.lower().translate(_NO_PUNCTUATION)).split())


def split_words(text: str) -> list[str]:
    """Split a text into the tokens of F1, containment and the Unicode ROUGE-L (**Choice**).

    For Latin script these are SQuAD's: :func:`squad_normalise`, split at blanks. So that answers in other scripts
    aren't all-or-nothing, full-width letters and digits become plain ones; punctuation of other scripts (``。``, ``؟``,
    ``।``) is dropped; and in scripts written without blanks (Han, kana, Thai, Lao, Khmer, Burmese) each character is a
    token, with its marks. Korean, Arabic, Hebrew and Hindi have blanks and keep their words. As in SQuAD, curly quotes,
    dashes and emoji are part of the word they touch.
    """
    return _split_words(text) if not text.isascii() else squad_normalise(text).split()


def _split_words(text: str) -> list[str]:
    folded = "".join(map(_fold_character, text))
    tokens = squad_normalise(folded).split()
    return [
        part for token in tokens for part in (_characters(token) if _SPACELESS_CHARACTER.search(token) else [token])
    ]


def _characters(token: str) -> list[str]:
    """Split a token around every character of a script without blanks."""
    pieces: list[str] = []
    joined = False
    for character in token:
        mark = unicodedata.category(character)[0] == "M"
        alone = not mark and _SPACELESS_CHARACTER.match(character) is not None
        if pieces and (mark or (joined and not alone)):
            pieces[-1] += character
        else:
            pieces.append(character)
        joined = joined if mark else not alone
    return pieces


@lru_cache(maxsize=4096)
def _fold_character(character: str) -> str:
    """Fold a character's width, and drop punctuation of scripts other than Latin."""
    if unicodedata.decomposition(character).startswith(("<wide>", "<narrow>")):
        character = unicodedata.normalize("NFKC", character)
    latin = character < "\u0100" or "\u2000" <= character <= "\u206f" or "\u2e00" <= character <= "\u2e7f"
    return " " if not latin and unicodedata.category(character)[0] == "P" else character


def exact_match(text: str, accepted: Sequence[str], *, tokens: TokenScheme = "words") -> float:
    """1 if a text and an accepted answer are equal after normalisation, else 0.

    Two texts that are empty after normalisation ("the", "…" in ASCII dots) are equal, as in SQuAD.
    """
    cut = _tokenizer_for(tokens)
    asked = cut(text)
    return float(any(asked == cut(one) for one in require_accepted(accepted)))


def token_f1(text: str, accepted: Sequence[str], *, tokens: TokenScheme = "words") -> float:
    """Harmonic mean of the precision and recall of tokens, counted with repetition; the best accepted answer's.

    If nothing is left of either text, the score is 0, even if nothing is left of both, as in SQuAD 1.1 (SQuAD 2.0 would
    give 1).
    """
    cut = _tokenizer_for(tokens)
    asked = cut(text)
    return max(_f1(asked, cut(one)) for one in require_accepted(accepted))


def _f1(asked: list[str], answer: list[str]) -> float:
    same = (Counter(asked) & Counter(answer)).total()
    if not same:
        return 0.0
    precision, recall = same / len(asked), same / len(answer)
    return 2 * precision * recall / (precision + recall)


def containment(text: str, accepted: Sequence[str], *, tokens: TokenScheme = "words") -> float:
    """1 if the tokens of an accepted answer occur in the text in sequence, else 0.

    Whole tokens (**Choice**): "no" isn't in "nobody", unlike in published scripts that search for substrings. An answer
    that is empty after normalisation is contained only in a text equal to it.
    """
    cut = _tokenizer_for(tokens)
    asked = cut(text)
    return float(any(_is_sublist(cut(one), asked) for one in require_accepted(accepted)))


def _is_sublist(answer: list[str], asked: list[str]) -> bool:
    # Tokens contain no blanks, so blanks around them are their boundaries.
    return f" {' '.join(answer)} " in f" {' '.join(asked)} " if answer else not asked


def rouge_l(text: str, accepted: Sequence[str], *, tokens: RougeTokenScheme = "rouge") -> float:
    """F-measure of the longest common subsequence of tokens (Lin 2004); the best accepted answer's.

    By default tokenizes like ``rouge-score`` without stemming, so that scores can be compared with published ones:
    lower case, with everything but a-z and 0-9 as blanks. Text in another script then has no tokens and scores 0, and
    "café" counts as "caf". ``tokens="unicode"`` uses :func:`split_words` instead; use it if answers aren't in English.
    Scores 0 without tokens on either side.
    """
    if tokens not in ("rouge", "unicode"):
        raise InputError(f"unknown tokens {quote_short(tokens)}", expected="rouge or unicode")
    cut = _rouge_words if tokens == "rouge" else split_words
    asked = cut(text)
    return max(_rouge(asked, cut(one)) for one in require_accepted(accepted))


def _rouge_words(text: str) -> list[str]:
    return _ROUGE_BREAKS.sub(" ", text.lower()).split()


def _rouge(asked: list[str], answer: list[str]) -> float:
    common = longest_common_subsequence(asked, answer)
    if not common:
        return 0.0
    precision, recall = common / len(asked), common / len(answer)
    return 2 * precision * recall / (precision + recall)


def longest_common_subsequence(first: Sequence[str], second: Sequence[str]) -> int:
    """Length of the longest common subsequence.

    Bit-parallel: an integer has a bit for each token of the shorter text, cleared where the common subsequence grows,
    so that a whole row of the usual table takes a few operations.
    """
    if len(first) > len(second):
        first, second = second, first
    places: dict[str, int] = {}
    for place, token in enumerate(first):
        places[token] = places.get(token, 0) | 1 << place
    full = (1 << len(first)) - 1
    row = full
    for token in second:
        found = row & places.get(token, 0)
        row = (row + found | row - found) & full
    return len(first) - row.bit_count()


def _tokenizer_for(tokens: TokenScheme) -> Callable[[str], list[str]]:
    if tokens == "words":
        return split_words
    if tokens == "squad":
        return lambda text: squad_normalise(text).split()
    raise InputError(f"unknown tokens {quote_short(tokens)}", expected="words or squad")


def require_accepted(accepted: Sequence[str]) -> Sequence[str]:
    """Return the accepted answers, or raise if there are none."""
    if isinstance(accepted, str):
        raise InputError(
            f"the accepted answers are one text, {quote_short(accepted)}",
            expected="a list of texts",
            remedy="put it in a list",
        )
    if not accepted:
        raise InputError("there are no accepted answers to compare with", expected="at least one")
    return accepted


COMPARISONS: dict[str, Callable[[str, Sequence[str]], float]] = {
    "em": exact_match,
    "f1": token_f1,
    "containment": containment,
    "rouge-l": rouge_l,
    "rouge-l-unicode": partial(rouge_l, tokens="unicode"),
}
"""Comparisons by name."""


class BestSimilarity(NamedTuple):
    """The highest similarity, the index of the text, and whether either text was truncated."""

    value: float
    place: int
    cut: bool
    skipped: int = 0
    """Number of texts that couldn't be compared."""


class OverlapSimilarity:
    """Similarity by overlap."""

    def __init__(self, name: str) -> None:
        self.name = name

    def learn(self, pairs: Iterable[tuple[str, Sequence[str]]]) -> None:
        """Do nothing; there is nothing to compute beforehand."""

    def best(self, text: str, others: Sequence[str]) -> BestSimilarity:
        values = [COMPARISONS[self.name](text, [other]) for other in others]
        place = max(range(len(values)), key=lambda n: (values[n], -n))
        return BestSimilarity(values[place], place, False)

    def notes(self) -> list[str]:
        return []
