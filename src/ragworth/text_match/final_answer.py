"""Find the statement in which a text gives its answer after reasoning: "Therefore, the answer is Lyon."."""

from __future__ import annotations

import re

_BEGINS = r"(?:^|[\n.!?;:*][ \t]*|\b(?:so|thus|hence|therefore|consequently|conclusion),?\s+)"
_NO_ANSWER = (
    r"(?!\s*(?:\w+ly\s+|well\s+|also\s+)?(?:based|found|given|provided|supported|stated|mentioned|taken|drawn|derived|according|in|from|by|on|not|"
    r"as follows|correct|yes|no|below|above)\b)"
)
_FINAL = re.compile(
    rf"(?im){_BEGINS}(?:the\s+|my\s+)?(?:(?:final|correct|short|right)\s+)*answer\s*(?:is\b|would be\b|:|=){_NO_ANSWER}"
    rf"|{_BEGINS}(?:die\s+)?(?:endgültige\s+|richtige\s+)?antwort\s*(?:ist\b|lautet\b|:)"
    rf"|{_BEGINS}(?:la\s+)?(?:respuesta|réponse|risposta|resposta)(?:\s+(?:final|finale|correcta|corretta))?"
    r"\s*(?:es\b|est\b|è\b|é\b|:)"
    r"|(?:最终答案|最終答案|答案|答え)(?:是|为|為|は|[:：])"
    r"|^#{4}\s+(?=[-$\d])"
)
_BOXED = re.compile(r"\\boxed\s*\{")


def final_answer(text: str) -> str:
    """What follows the last words that announce an answer; empty if nothing is announced after other text."""
    boxed = list(_BOXED.finditer(text))
    if boxed:
        return text[boxed[-1].start() :]
    announced = list(_FINAL.finditer(text))
    if not announced or not re.search(r"\w", text[: announced[-1].start()]):
        return ""
    return text[announced[-1].end() :].strip()
