"""The table of drafts: everything that was proposed for a collection, with what became of it."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple

from ragworth.core.errors import FormatError, TableError, quote_short
from ragworth.formats.files import create_file
from ragworth.formats.values import WrongLineError, as_id, as_text, read_objects

KEPT = "kept"
"""The status of a draft that is part of the collection. Any other status is the reason why it isn't."""

EXPECTED = '{"id": …, "kind": …, "stratum": …, "fields": {…}, "status": …, "reason": …} on each line'


@dataclass(frozen=True)
class Draft:
    """One proposal: a question, a sub-question, a passage, a nugget."""

    id: str
    kind: str
    stratum: str = ""
    """The part of the plan that it was written for."""
    fields: Mapping[str, Any] = field(default_factory=dict)
    """Its content: texts, spans, accepted answers. JSON values only."""
    status: str = KEPT
    reason: str = ""
    """Details of the status, in words."""

    @property
    def kept(self) -> bool:
        return self.status == KEPT

    def drop(self, status: str, reason: str = "") -> Draft:
        """The draft with a status that keeps it out of the collection. The first such status stays."""
        if status == KEPT:
            raise ValueError(f"{KEPT!r} is no reason to drop a draft")
        return replace(self, status=status, reason=reason) if self.kept else self


class FunnelStep(NamedTuple):
    """How many drafts ended with a status, and how many were left after it."""

    status: str
    drafts: int
    left: int


class Drafts:
    """Drafts by id, in order. Ids are distinct."""

    def __init__(self, drafts: Iterable[Draft] = ()) -> None:
        self._drafts: dict[str, Draft] = {}
        for draft in drafts:
            self.add(draft)

    def add(self, draft: Draft) -> None:
        if draft.id in self._drafts:
            raise TableError(f"the draft {quote_short(draft.id)} occurs twice", expected="each draft once")
        self._drafts[draft.id] = draft

    def drop(self, id: str, status: str, reason: str = "") -> None:
        """Give a draft a status other than ``kept``; a draft that has one keeps it."""
        self._drafts[id] = self._drafts[id].drop(status, reason)

    def __iter__(self) -> Iterator[Draft]:
        return iter(list(self._drafts.values()))

    def __len__(self) -> int:
        return len(self._drafts)

    def __getitem__(self, id: str) -> Draft:
        return self._drafts[id]

    def __contains__(self, id: object) -> bool:
        return id in self._drafts

    @property
    def kept(self) -> list[Draft]:
        return [draft for draft in self if draft.kept]

    def funnel(self, order: Iterable[str] = ()) -> list[FunnelStep]:
        """The way from all drafts to the kept ones. Statuses in ``order`` come first, the others by their number."""
        counts = Counter(draft.status for draft in self if not draft.kept)
        first = [status for status in dict.fromkeys(order) if status in counts]
        rest = [status for status, _ in counts.most_common() if status not in first]
        steps, left = [], len(self)
        for status in (*first, *rest):
            left -= counts[status]
            steps.append(FunnelStep(status, counts[status], left))
        return steps

    def write(self, path: str | Path) -> None:
        """Write all drafts as JSON lines, in one step."""
        with create_file(path) as stream:
            stream.write(self.encode())

    def encode(self) -> bytes:
        """All drafts as JSON lines."""
        return b"".join(map(_to_line, self))

    @classmethod
    def read(cls, path: str | Path) -> Drafts:
        drafts = cls()
        for number, item in read_objects(path, [], skip=False, expected=EXPECTED):
            try:
                draft = _from_object(item)
            except WrongLineError as error:
                raise FormatError(str(error), file=str(path), line=number, expected=EXPECTED) from error
            if draft.id in drafts:
                raise FormatError(f"the draft {quote_short(draft.id)} occurs twice", file=str(path), line=number)
            drafts.add(draft)
        return drafts


def _to_line(draft: Draft) -> bytes:
    row = {name: getattr(draft, name) for name in ("id", "kind", "stratum", "fields", "status", "reason")}
    return (json.dumps(row, ensure_ascii=False) + "\n").encode("utf-8", "backslashreplace")


def _from_object(item: Mapping[str, Any]) -> Draft:
    texts = {name: as_text(item.get(name, ""), name) for name in ("stratum", "reason")}
    fields = item.get("fields")
    if not isinstance(fields, dict):
        raise WrongLineError("no object 'fields'")
    kind, status = as_text(item.get("kind"), "kind"), as_text(item.get("status"), "status")
    return Draft(as_id(item.get("id"), "id"), kind, texts["stratum"], fields, status, texts["reason"])
