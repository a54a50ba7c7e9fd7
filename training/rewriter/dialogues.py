"""Conversations about one group of passages or two: a full question first, then follow-ups, now and then a shift."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from training.reader.texts import holds, sentences
from training.reader.written import Asked, Group
from training.rewriter.followups import ELLIPSIS, PRONOUN, Followup, elliptic, shortened
from training.rewriter.names import IT, Mention, Name, Pronouns, capitalised, fold, mentions, names

FIRST, FULL, SHIFT, RETURN = "first", "full", "shift", "return"
"""Turns that aren't shortened: the first one, another one about the same group, the first about another group."""
_WH = re.compile(r"(who|whom|whose|what|when|where|which|why|how|is|are|was|did|does|in which|at what|to what)\b", re.I)
_AND = ("And {}?", "What about {}?", "How about {}?", "and {}?")
_BACK = ("Back to {}: {}", "Going back to {}, {}", "Coming back to {}: {}", "About {} again: {}")
LONGEST_SENTENCE = 40
"""Words of a sentence that an assistant answers with; where it is longer, the answer alone is its message."""


class Said(NamedTuple):
    """A turn: the question as it is asked here, of which kind it is, and what the assistant says to it."""

    asked: Asked
    text: str
    kind: str
    reply: str


@dataclass
class Subject:
    """A group that is talked about: its names, the questions not asked yet, and what was asked last."""

    group: Group
    draw: random.Random
    used: set[str]
    names: list[Name] = field(init=False)
    left: list[Asked] = field(init=False)
    said: list[Said] = field(default_factory=list)
    mentioned: dict[str, list[Mention]] = field(default_factory=dict)
    focus: Name | None = None

    def __post_init__(self) -> None:
        self.names = names(self.group)
        answered = [asked for asked in self.group.questions if asked.answers and asked.answering]
        self.left = [asked for asked in answered if asked.text not in self.used]
        self.draw.shuffle(self.left)

    def open(self, kind: str) -> Said | None:
        """A full question about a name that many questions mention, and that can be followed up."""
        about = {name.text: [q for q in self.left if self._once(name, q.text)] for name in self.names}
        for name in sorted(self.names, key=lambda name: (-len(about[name.text]), name.text)):
            full = [q for q in about[name.text] if _WH.match(q.text) and not self._special(name, q.text)]
            for asked in sorted(full, key=lambda q: -_length(self._once(name, q.text))):
                self.focus = name
                said = self._say(asked, Followup(asked.text, kind))
                if any(self._options()):
                    return said
                self.said.pop()
                self.left.append(asked)
        return None

    def follow(self) -> Said | None:
        """A follow-up to what was asked last, rather one without names: it depends on the history most."""
        options = list(self._options())
        if not options:
            return None
        kinds = {option.kind for _, option in options}
        kind = ELLIPSIS if ELLIPSIS in kinds else self.draw.choice(sorted(kinds))
        of_kind = [pair for pair in options if pair[1].kind == kind]
        dependent = [pair for pair in of_kind if not capitalised(pair[1].text)]
        asked, option = self.draw.choice(dependent or of_kind)
        return self._say(asked, option)

    def come_back(self, other: Subject) -> Said | None:
        """A question about the first subject again, after another one was talked about."""
        if self.focus is None:
            return None
        for asked in self.left:
            mention = self._once(self.focus, asked.text)
            ways = shortened(asked.text, mention, pronoun=True, noun=False) if mention else []
            for way in ways:
                if _WH.match(way.text):
                    lead = self._lead(self.focus, other)
                    text = self.draw.choice(_BACK).format(lead, way.text[0].lower() + way.text[1:])
                    return self._say(asked, Followup(text, RETURN))
        return None

    @staticmethod
    def _lead(name: Name, other: Subject) -> str:
        """What a return begins with: the noun, unless the other subject has one like it, or a short name."""
        nouns = {each.noun for each in other.names}
        if name.noun is not None and name.noun not in nouns:
            return f"the {name.noun}"
        return name.short or name.text

    def _options(self) -> Iterator[tuple[Asked, Followup]]:
        last = self.said[-1].asked
        for asked in self.left:
            phrase = elliptic(last.text, asked.text)
            if phrase is not None:
                yield asked, Followup(self.draw.choice(_AND).format(phrase), ELLIPSIS)
                continue
            yield from ((asked, way) for way in self._ways(asked.text, last))

    def _ways(self, text: str, last: Asked) -> Iterator[Followup]:
        """How a question can be asked after the last one, whose names or answer it mentions."""
        answer = self._answered()
        mentioned = [mention.name for mention in self._mentions(last.text)]
        for name in {id(each): each for each in (self.focus, answer, *mentioned) if each is not None}.values():
            mention = self._once(name, text)
            if mention is not None:
                clear = name is answer or (name is self.focus and self._clear(name, last))
                ways = shortened(text, mention, pronoun=clear, noun=self._only(name))
                yield from (way for way in ways if name is not answer or way.kind == PRONOUN)

    def _answered(self) -> Name | None:
        """The name that was the last answer, if it is a person's."""
        answers = {fold(answer) for answer in self.said[-1].asked.answers}
        found = (name for name in self.names if {fold(spelling) for spelling in name.spellings} & answers)
        name = next(found, None)
        return name if name is not None and name.pronouns not in (None, IT) else None

    def _clear(self, name: Name, last: Asked) -> bool:
        """Whether a pronoun after the last question and its answer means the name and nothing else in them."""
        others = [mention.name for mention in self._mentions(last.text) if mention.name is not name]
        if any(_confusable(name.pronouns, other.pronouns) for other in others):
            return False
        if not any(answer[:1].isupper() for answer in last.answers):
            return True
        asks_who = re.match(r"(who|whom|whose)\b|.*\b(winner|coach|director)\b", last.text, re.I) is not None
        return asks_who == (name.pronouns is IT)

    def _only(self, name: Name) -> bool:
        """Whether no other name of the group is called by the same noun."""
        return sum(other.noun == name.noun for other in self.names) == 1

    def _mentions(self, text: str) -> list[Mention]:
        if text not in self.mentioned:
            self.mentioned[text] = mentions(text, self.names)
        return self.mentioned[text]

    def _once(self, name: Name, text: str) -> Mention | None:
        found = [mention for mention in self._mentions(text) if mention.name is name]
        return found[0] if len(found) == 1 else None

    def _special(self, name: Name, text: str) -> bool:
        """Whether a question is about one of several of that name: ``the first Kalindra``, ``Lumora Two Air``."""
        mention = self._once(name, text)
        before, after = (text[: mention.start], text[mention.end :]) if mention else ("", "")
        which = re.search(
            r"\b(first|second|third|old|older|new|newer|other|original|former|\d+(st|nd|rd|th)) $", before
        )
        return (
            which is not None
            or re.match(r" (air|pro|plus|mini|max|ultra|two|three|ii|iii|\d)\b", after, re.I) is not None
        )

    def _say(self, asked: Asked, way: Followup) -> Said:
        self.left.remove(asked)
        if way.kind == ELLIPSIS or self.focus is None or self._once(self.focus, asked.text) is None:
            mentioned = self._mentions(asked.text)
            same = any(mention.name is self.focus for mention in mentioned)
            self.focus = self.focus if same else (mentioned[-1].name if len(mentioned) == 1 else None)
        self.said.append(Said(asked, way.text, way.kind, _reply(self.group, asked, self.draw)))
        return self.said[-1]


def _confusable(one: Pronouns | None, other: Pronouns | None) -> bool:
    return other is None or one is other


def _length(mention: Mention | None) -> int:
    return mention.end - mention.start if mention else 0


def _reply(group: Group, asked: Asked, draw: random.Random) -> str:
    """The answer, or the sentence of a passage that has it: assistants are brief or not."""
    passage = group.passages[draw.choice(asked.answering)]
    having = [part for part in sentences(passage) if holds(asked.answers, part) is not None]
    brief = asked.answers[0][0].upper() + asked.answers[0][1:]
    if draw.random() < 0.5 or not having or len(having[0].split()) > LONGEST_SENTENCE:
        return brief if brief.endswith(".") else f"{brief}."
    return having[0]


def about_one(group: Group, draw: random.Random, turns: int, used: set[str]) -> list[tuple[Group, Said]]:
    """A conversation about one group."""
    subject = Subject(group, draw, used)
    _talk(subject, FIRST, turns)
    while 0 < len(subject.said) < turns and len(subject.said) < len(_talk(subject, FULL, turns)):
        pass
    return [(group, said) for said in subject.said]


def about_two(one: Group, other: Group, draw: random.Random, used: set[str]) -> list[tuple[Group, Said]]:
    """A conversation that leaves its subject for another one and comes back to it, if there is a way to say so."""
    first, second = Subject(one, draw, used), Subject(other, draw, used)
    opened = _talk(first, FIRST, draw.randint(2, 4))
    shifted = _talk(second, SHIFT, draw.randint(2, 4))
    if not opened or not shifted:
        alone = [(other, said._replace(kind=FIRST if said.kind == SHIFT else said.kind)) for said in shifted]
        return [(one, said) for said in opened] or alone
    said = [*((one, said) for said in opened), *((other, said) for said in shifted)]
    back = first.come_back(second)
    return said if back is None else [*said, (one, back)]


def _talk(subject: Subject, opening: str, turns: int) -> list[Said]:
    """A full question and its follow-ups, as long as there are any; nothing where no question can be followed up."""
    if subject.open(opening) is not None:
        while len(subject.said) < turns and subject.follow() is not None:
            pass
    return list(subject.said)
