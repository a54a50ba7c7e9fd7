"""A sample of questions for human review, and the reviewed sample read back into the collection's card."""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import polars as pl

from ragworth.build.card import CARD_FILE, PAGE_FILE, CollectionCard
from ragworth.build.drafts import Drafts
from ragworth.build.question_set import DRAFTS_FILE
from ragworth.errors import FormatError, format_count, format_list, quote_short
from ragworth.formats.files import create_file
from ragworth.formats.jsonl import read_texts
from ragworth.formats.spreadsheet import write_csv
from ragworth.prompt_table import read_rows
from ragworth.stats.range_intervals import wilson_interval
from ragworth.storage.file_record import FileRecord

YES = {"yes", "y", "1", "true", "sound", "ok"}
NO = {"no", "n", "0", "false", "unsound", "bad"}
COLUMNS = ("id", "question", "answers", "passages", "type", "style", "sound", "comment")


@dataclass(frozen=True)
class Review:
    """What people found: how many of the reviewed questions are sound."""

    reviewed: int
    sound: int
    blank: int
    """Rows that nobody filled in. They count neither way."""
    by_type: dict[str, str]
    comments: tuple[str, ...]

    @property
    def interval(self) -> tuple[float, float] | None:
        return wilson_interval(self.sound, self.reviewed, 0.95) if self.reviewed else None

    @property
    def sentence(self) -> str:
        left = f" ({format_count(self.blank, 'row')} not filled in)" if self.blank else ""
        return f"{_share(self.sound, self.reviewed)}{left}"


def _share(sound: int, reviewed: int) -> str:
    if not reviewed:
        return "none reviewed"
    low, high = wilson_interval(sound, reviewed, 0.95)
    verb = "is" if sound == 1 else "are"
    return f"of {reviewed:,} reviewed, {sound:,} {verb} sound [{_short(low)}, {_short(high)}]"


def _short(share: float) -> str:
    return f"{share:.2f}".removeprefix("0")


def draw_sample(collection: str | Path, number: int, seed: int = 0) -> pl.DataFrame:
    """Kept questions drawn at random, with all that a reviewer needs; ``sound`` and ``comment`` are to be filled in."""
    folder = Path(collection)
    kept = _drafts(folder).kept
    if not kept:
        raise FormatError("no question was kept, so there is nothing to review", file=str(folder))
    if any("question" not in draft.fields for draft in kept):
        remedy = "build questions with ragworth build questions, or have ratings labelled with ragworth label"
        raise FormatError("its drafts aren't questions with passages", file=str(folder), remedy=remedy)
    texts, _ = read_texts(folder / "passages.jsonl", kind="passage", skip_bad_lines=False)
    passages = dict(texts.select("passage", "text").iter_rows())
    chosen = random.Random(f"{seed} review").sample(kept, min(number, len(kept)))
    rows = []
    for draft in chosen:
        fields = draft.fields
        turns = "".join(f"{each['role']}: {each['text']}\n" for each in fields.get("history", ()))
        shown = [f"[{id}]\n{passages[id]}" for id in fields["passages"]]
        answers = " | ".join(fields["answers"]) if fields["answerable"] else "(unanswerable)"
        texts_of = (draft.id, turns + fields["question"], answers, "\n\n".join(shown))
        rows.append((*texts_of, fields["type"], fields["style"], "", ""))
    return pl.DataFrame(rows, schema=dict.fromkeys(COLUMNS, pl.String), orient="row")


def _drafts(folder: Path) -> Drafts:
    if not (folder / DRAFTS_FILE).is_file():
        raise FormatError(f"no {DRAFTS_FILE} here", file=str(folder), expected="a folder of ragworth build questions")
    return Drafts.read(folder / DRAFTS_FILE)


def write_sample(sample: pl.DataFrame, path: str | Path) -> None:
    """Write CSV, safe for spreadsheets, or JSON lines."""
    if str(path).endswith(".jsonl"):
        data = b"".join((json.dumps(row, ensure_ascii=False) + "\n").encode() for row in sample.iter_rows(named=True))
    else:
        data = write_csv(sample, separator=",", quote="non_numeric")
    with create_file(path) as stream:
        stream.write(data)


def read_review(path: str | Path, collection: str | Path) -> Review:
    """Read a reviewed sample. An unknown id, or a verdict that is neither yes nor no, is an error with its row."""
    drafts = _drafts(Path(collection))
    rows = read_rows(str(path))
    verdicts: list[tuple[str, bool]] = []
    comments: list[str] = []
    seen: Counter[str] = Counter()
    blank = 0
    if rows and not any("sound" in row for row in rows):
        raise _row_error(path, 1, "there is no column 'sound'")
    for number, row in enumerate(rows, 1):
        id, word = _cell(row, "id"), _cell(row, "sound").casefold()
        if id not in drafts:
            raise _row_error(path, number, f"the collection has no question {quote_short(id, 40)}")
        if not drafts[id].kept:
            raise _row_error(path, number, f"the question {quote_short(id, 40)} isn't in the collection any more")
        seen[id] += 1
        if seen[id] > 1:
            raise _row_error(path, number, f"the question {quote_short(id, 40)} occurs twice")
        if word and word not in YES | NO:
            raise _row_error(path, number, f"sound is {quote_short(word, 24)}", "yes or no, or nothing")
        blank += not word
        verdicts += [(str(drafts[id].fields.get("type", "")), word in YES)] if word else []
        comments += [f"{id}: {comment}"] if (comment := _cell(row, "comment")) else []
    kinds = sorted({kind for kind, _ in verdicts})
    by_type = {kind: _share(*_count([sound for each, sound in verdicts if each == kind])) for kind in kinds}
    sound, reviewed = _count([each for _, each in verdicts])
    return Review(reviewed, sound, blank, by_type, tuple(comments))


def _count(verdicts: Sequence[bool]) -> tuple[int, int]:
    return sum(verdicts), len(verdicts)


def _cell(row: dict[str, Any], name: str) -> str:
    value = row.get(name)
    if isinstance(value, bool):
        return "yes" if value else "no"
    return str(value if value is not None else "").strip().removeprefix("'")


def _row_error(path: str | Path, number: int, found: str, expected: str = "") -> FormatError:
    known = expected or f"the file of ragworth build sample, with {format_list(list(COLUMNS), 8)}"
    return FormatError(f"row {number}: {found}", file=str(path), expected=known)


def add_review(collection: str | Path, review: Review, source: str) -> None:
    """Write the review into the collection's card."""
    card = CollectionCard.read(collection)
    facts: dict[str, Any] = {"sentence": review.sentence, "reviewed": review.reviewed, "sound": review.sound}
    facts |= {"interval": review.interval, "by_type": review.by_type, "file": source, "comments": review.comments}
    record = FileRecord(collection)
    for name, data in replace(card, review=facts).files().items():
        record.write(name, data, adopt=name in (CARD_FILE, PAGE_FILE))
