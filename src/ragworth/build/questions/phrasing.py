"""Wording of questions that rules make from a sentence: a real question where its form allows one, else a gap."""

from __future__ import annotations

import random
import re

from ragworth.build.questions.facts import PRONOUN, UNIT, Fact

OPENERS = ("Quick question: {}", "Hi! {}", "Hello, one thing I need: {}", "{} Thanks!")
_COMMON = (
    "a an the is are was were be been of in on at to for and or by with from as that which what who how many do does "
    "did it its their his her this these those has have had can you tell me when where year date"
)
STOP_WORDS = frozenset(_COMMON.split())
_LITTLE = "but she he they all also more than any there who whose into over not no so if then only both each some most"
LITTLE_WORDS = STOP_WORDS | frozenset(_LITTLE.split())
"""Words that nobody types into a search box."""
GAP = "…"
PREPOSITIONS = "in on by to of with from for at until since as after before under near during"
FRONTED = re.compile(
    r"^(?P<subject>(?:The |A |An |Each |Every )?[\w'’ -]{2,60}?) (?P<verb>is|are|was|were|can|may|must|will|should) "
    rf"(?P<rest>[^,]*?)(?P<preposition>{PREPOSITIONS.replace(' ', '|')})$"
)
CALLED = re.compile(
    r"^(?P<subject>[\w'’ -]{2,60}?) (?P<verb>is|are|was|were) (?:also |often |sometimes |commonly |now )?"
    r"(?P<called>called|named|known as|referred to as)(?: the)?$"
)
OWNING = re.compile(
    r"^(?P<subject>[\w'’ -]{2,60}?) (?P<verb>has|have|had) (?:about |some |nearly |almost |around |over |exactly )?$"
)
LISTING = re.compile(r"^(?P<subject>[\w'’ -]{2,60}?) (?P<verb>include|consist of|contain|are|were|is|was)s?$")
DOES = {"has": "does", "have": "do", "had": "did"}
MISSING = {kind: f"{kind} is" for kind in ("date", "year", "number", "name", "list")} | {"definition": "words are"}
NO_SUBJECT = re.compile(r"(?:Since|When|While|As|After|Before|During|In|On|At|By|From|With|For|Under|Within)\b")
UNFIT_SUBJECT = re.compile(r"\b(?:that it|we|We|You|I)\b|'ve\b|\bsuggest")
"""What a subject can't have in a question that is read alone."""
HAS_VERB = re.compile(r"\b(?:is|are|was|were|be|can|may|must|will|should|has|have|had)\b")
PARTICIPLE = re.compile(r"(?:\w+ly )?\w+(?:ed|en|wn|de|lt|ld|un|ung|ht)\b")
GOES_ON = re.compile(rf"^(?:(?:{PREPOSITIONS.replace(' ', '|')})\b[^,]{{0,80}}|(?:[,;]|and\b).*)?$")
PERSON = re.compile(r"^[A-Z][a-z’'-]+(?: [A-Z][a-z’'-]*\.?){1,2}$")
KEYWORD_REACH = 6
MIN_KEYWORDS, MAX_KEYWORDS = 3, 9


def ask_for(fact: Fact, title: str) -> str:
    """A question for the fact, with capital and question mark, that names the title of its document."""
    return natural_question(fact, title) or gap_question(fact, title)


def natural_question(fact: Fact, title: str) -> str:
    """The sentence turned into a question; empty if its form doesn't allow that."""
    before = PRONOUN.sub(lambda match: _subject(match[0], title), fact.before) if title else fact.before
    if PRONOUN.match(before) or NO_SUBJECT.match(before):
        return ""
    question = _called(fact, before) or _fronted(fact, before) or _owning(fact, before) or _listing(fact, before)
    if not question or UNFIT_SUBJECT.search(question):
        return ""
    return standalone(f"{title}: {question}" if not mentions(question, title) else question)


def gap_question(fact: Fact, title: str) -> str:
    """Which word is missing in the sentence, in quotes, with the title behind it unless the sentence names it."""
    return f"Which {MISSING[fact.kind]} missing in {gap_statement(fact, title)}?"


def gap_statement(fact: Fact, title: str) -> str:
    """The sentence with a gap, in quotes, and its subject."""
    text = tidy(f"{fact.before} {GAP} {fact.after}")
    return f"“{text}”" if mentions(text, title) else f"“{text}” ({title})"


def mentions(text: str, title: str) -> bool:
    """Whether a text has all words of a title that say something."""
    known = {word.casefold() for word in re.findall(r"\w{3,}", text)}
    return all(word.casefold() in known for word in re.findall(r"\w{3,}", title) if word.casefold() not in STOP_WORDS)


def _subject(pronoun: str, title: str) -> str:
    return f"{title}'s" if pronoun in ("Its", "His", "Her", "Their") else title


def _called(fact: Fact, before: str) -> str:
    match = CALLED.match(before) if fact.kind == "name" else None
    if match is None:
        return ""
    as_what = match["called"] in ("known as", "referred to as")
    start, end = ("as what", match["called"].removesuffix(" as")) if as_what else ("what", match["called"])
    return f"{start} {match['verb']} {_lowered(match['subject'])} {end}"


def _fronted(fact: Fact, before: str) -> str:
    """``When``-first word order, for a date, a year or a person behind a preposition that ends a passive clause."""
    match = FRONTED.match(before)
    if match is None or not GOES_ON.match(fact.after):
        return ""
    if fact.kind in ("date", "year"):
        wh = f"{match['preposition']} {_time(fact)}"
    elif (
        fact.kind == "name"
        and match["preposition"] == "by"
        and _is_person(fact)
        and " by " not in before[:-2]
        and PARTICIPLE.match(match["rest"])
    ):
        wh = "by whom"
    else:
        return ""
    rest = fact.after if not fact.after.startswith((",", ";", "and ")) else ""
    words = [wh, match["verb"], _lowered(match["subject"]), match["rest"].strip(), rest]
    return tidy(" ".join(filter(None, words)))


def _time(fact: Fact) -> str:
    if fact.kind == "year":
        return "which year"
    return "which month" if re.fullmatch(r"[A-Z][a-z]+ \d{4}", fact.text) else "what date"


def _is_person(fact: Fact) -> bool:
    return PERSON.match(fact.text) is not None and fact.before.endswith("by")


def _owning(fact: Fact, before: str) -> str:
    """``How many``, for a number of things that the subject has."""
    match = OWNING.match(f"{before} ")
    unit = re.match(rf"{UNIT}", fact.after)
    if match is None or HAS_VERB.search(match["subject"]):
        return ""
    if unit is None or fact.kind != "number" or not GOES_ON.match(fact.after[unit.end() :].strip()):
        return ""
    rest = fact.after[unit.end() :].strip()
    rest = "" if rest.startswith((",", ";", "and ")) else rest
    of, rest = (rest, "") if rest.startswith("of ") else ("", rest)
    words = ["how many", unit[0], of, DOES[match["verb"]], _lowered(match["subject"]), "have", rest]
    return tidy(" ".join(filter(None, words)))


def _listing(fact: Fact, before: str) -> str:
    """What a list or a definition says of its subject."""
    match = LISTING.match(before) if fact.kind in ("list", "definition") else None
    if match is None:
        return ""
    subject, verb = _lowered(match["subject"]), match["verb"]
    if verb in ("is", "are", "was", "were"):
        return f"what {verb} {subject}"
    does = "does" if before.endswith("s") or " consists of" in before else "do"
    return f"what {does} {subject} {verb}"


def tidy(text: str) -> str:
    """Single blanks, and none before a comma or inside parentheses."""
    return re.sub(r"(?<=\() | (?=[,.;:!?)])", "", " ".join(text.split()))


def _lowered(text: str) -> str:
    """Without the capital of a sentence; a name or an abbreviation keeps its own."""
    first = text.split(" ", 1)[0]
    common = first in ("The", "A", "An", "Each", "Every", "Its", "All", "Some")
    return text[:1].lower() + text[1:] if common else text


def standalone(text: str) -> str:
    """A question with its capital and question mark."""
    return f"{text[:1].upper()}{text[1:].rstrip('?. ')}?"


def key_words(fact: Fact, title: str) -> str:
    """What a user types into a search box: the title, the words next to the fact, and what is asked for; empty if that
    can't be said in a word."""
    near = re.findall(r"[\w'’%.,-]*\w", fact.before)[-KEYWORD_REACH:]
    near += re.findall(r"[\w'’%.,-]*\w", fact.after)[:KEYWORD_REACH]
    words = re.findall(r"[\w'’-]*\w", title) + near
    some = list(dict.fromkeys(word for word in words if word.casefold() not in LITTLE_WORDS))[:MAX_KEYWORDS]
    own = [word for word in some if word in near]
    asked = {"year": "year", "date": "date", "number": "how many", "list": "list", "definition": "definition"}
    place = re.search(r"\b(?:in|at|from|near|to)$", fact.before)
    kind = asked.get(fact.kind) or ("who" if _is_person(fact) else "where" if place else "")
    return " ".join([*some, kind]) if kind and len(own) >= MIN_KEYWORDS else ""


def join_questions(first: str, second: str) -> str:
    """Two questions as one request."""
    lower = second.split(" ", 1)[0] in ("Which", "What", "How", "On", "In", "By", "As", "Since", "Until")
    return f"{first} And {second[:1].lower() if lower else second[:1]}{second[1:]}"


def in_chat(text: str, draw: random.Random) -> str:
    """The question as a casual message."""
    return draw.choice(OPENERS).format(text)
