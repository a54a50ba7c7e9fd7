"""A text against accepted answers, as a number from 0 to 1: exact match, token F1, containment, ROUGE-L.

Each function takes the best over the accepted answers. With their default tokens, exact match and F1 are the
official SQuAD 1.1 evaluation's on every text in Latin script, and ROUGE-L is the F-measure of the package
``rouge-score`` without stemming on every text. What goes beyond them is marked **Choice**.
"""

from __future__ import annotations

import re
import string
import unicodedata
from collections import Counter
from collections.abc import Callable, Sequence
from functools import lru_cache, partial
from typing import Literal

from ragworth.errors import InputError, quote_short

TokenScheme = Literal["words", "squad"]
"""How EM, F1 and containment see a text: as SQuAD does, or so that scripts without blanks have words too."""

RougeTokenScheme = Literal["rouge", "unicode"]
"""How ROUGE-L sees a text: runs of a-z and 0-9, or the tokens that F1 has."""

# Scripts that are written without blanks between words, as ranges of a character class.
SCRIPTS_WITHOUT_SPACES = (
    "\u0e00-\u0eff"  # Thai, Lao
    "\u1000-\u109f\u1780-\u17ff"  # Burmese, Khmer
    "\u3005-\u3007\u3040-\u30fa\u30fc-\u30ff\u31f0-\u31ff"  # kana, and the signs that repeat or lengthen
    "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"  # Han
)

_ARTICLES = re.compile(r"\b(a|an|the)\b")
_NO_PUNCTUATION = dict.fromkeys(map(ord, string.punctuation))
_ROUGE_BREAKS = re.compile(r"[^a-z0-9]+")
_SPACELESS_CHARACTER = re.compile(rf"[{SCRIPTS_WITHOUT_SPACES}]")


def squad_normalise(text: str) -> str:
    """``text`` as SQuAD compares it: lower case, no ASCII punctuation, no English articles, single blanks."""
    return " ".join(_ARTICLES.sub(" ", text.lower().translate(_NO_PUNCTUATION)).split())


def split_words(text: str) -> list[str]:
    """The tokens of a text by which F1, containment and the Unicode ROUGE-L count (**Choice**).

    For text in Latin script these are SQuAD's: what blanks part after :func:`squad_normalise`. Beyond it, so that
    answers in other scripts are not all-or-nothing: full-width letters and digits are the plain ones; marks of
    punctuation that belong to another script (``。``, ``؟``, ``।``) are dropped; and in scripts that
    are written without blanks (Han, kana, Thai, Lao, Khmer, Burmese) each character is a token, with the marks that
    stand on it. Korean, Arabic, Hebrew and Hindi have blanks and keep their words. Curly quotes, dashes and
    emoji stay what they are to SQuAD: part of the word they touch.
    """
    return _split_words(text) if not text.isascii() else squad_normalise(text).split()


def _split_words(text: str) -> list[str]:
    folded = "".join(map(_fold_character, text))
    spread: list[str] = []
    for token in squad_normalise(folded).split():
        spread += _characters(token) if _SPACELESS_CHARACTER.search(token) else [token]
    return spread


def _characters(token: str) -> list[str]:
    """A token cut before and after every character of a script without blanks."""
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
    """A character without its width; nothing for a mark of punctuation of a script other than Latin."""
    if unicodedata.decomposition(character).startswith(("<wide>", "<narrow>")):
        character = unicodedata.normalize("NFKC", character)
    latin = character < "\u0100" or "\u2000" <= character <= "\u206f" or "\u2e00" <= character <= "\u2e7f"
    return " " if not latin and unicodedata.category(character)[0] == "P" else character


def exact_match(text: str, accepted: Sequence[str], *, tokens: TokenScheme = "words") -> float:
    """1 when a text and an accepted answer are the same after normalisation, else 0.

    Two texts of which nothing is left ("the", "…" in ASCII dots) are the same, as in SQuAD.
    """
    cut = _tokenizer_for(tokens)
    asked = cut(text)
    return float(any(asked == cut(one) for one in require_accepted(accepted)))


def token_f1(text: str, accepted: Sequence[str], *, tokens: TokenScheme = "words") -> float:
    """Harmonic mean of the precision and recall of tokens, counted with repetition; the best accepted answer's.

    A text or an answer of which nothing is left scores 0, even against another such, as in SQuAD 1.1
    (SQuAD 2.0 would say 1).
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
    """1 when the tokens of an accepted answer stand in the text one after the other, else 0.

    Whole tokens (**Choice**): "no" is not in "nobody", unlike where published scripts look for substrings. An
    answer of which normalisation leaves nothing is contained only in a text that is equal to it.
    """
    cut = _tokenizer_for(tokens)
    asked = cut(text)
    return float(any(_is_sublist(cut(one), asked) for one in require_accepted(accepted)))


def _is_sublist(answer: list[str], asked: list[str]) -> bool:
    # Tokens hold no blanks, so that blanks around them are their boundaries.
    return f" {' '.join(answer)} " in f" {' '.join(asked)} " if answer else not asked


def rouge_l(text: str, accepted: Sequence[str], *, tokens: RougeTokenScheme = "rouge") -> float:
    """F-measure of the longest common subsequence of tokens (Lin 2004); the best accepted answer's.

    The default cuts as ``rouge-score`` does without stemming, so that figures can be compared with published
    ones: lower case, everything but a-z and 0-9 is a blank. Text in another script then has no tokens and scores 0, and
    "café" counts as "caf". ``tokens="unicode"`` takes those of :func:`split_words` instead; it is what to use
    wherever answers are not in English. No tokens on either side score 0.
    """
    if tokens not in ("rouge", "unicode"):
        raise InputError(f"there are no tokens called {quote_short(tokens)}", expected="rouge or unicode")
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

    Bit-parallel: one integer has a bit for each token of the shorter text, cleared where the
    length of the common subsequence grows, so that a whole row of the usual table is a few operations on it.
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
    raise InputError(f"there are no tokens called {quote_short(tokens)}", expected="words or squad")


def require_accepted(accepted: Sequence[str]) -> Sequence[str]:
    """The accepted answers, of which there must be some: without any, no value can be right."""
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
