"""From the files that were read to the tables of a ragworth.toml; what is left out, and why, is remembered."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import NamedTuple

from ragworth.core.errors import TableError, format_list, quote_short
from ragworth.data import Judgments
from ragworth.data.collection import Collection, match_questions, merge_collections, plain_text
from ragworth.formats.contract import Kind
from ragworth.formats.files import run_name
from ragworth.formats.kinds import KIND_NAMES
from ragworth.workspace.config import EVERY_SYSTEM
from ragworth.workspace.files import ReadFile
from ragworth.workspace.matching import match_references
from ragworth.workspace.toml import TomlValue


class Place(NamedTuple):
    """The table and key of ragworth.toml for a kind of file."""

    table: str
    key: str
    rows: tuple[str, ...] = ()
    """Columns by which no two files may have the same row, where several may be named."""


PLACES: dict[Kind, Place] = {
    "collection": Place("collection", "from"),
    "references": Place("collection", "from"),
    "queries": Place("collection", "queries"),
    "passages": Place("collection", "passages"),
    "answers": Place("collection", "answers"),
    "subquestions": Place("collection", "subquestions"),
    "ratings": Place("collection", "ratings"),
    "qrels": Place("collection", "qrels", Judgments.key),
    "judgments": Place("judgments", "files", Judgments.key),
    "written": Place("answers", "file"),
    "outcomes": Place("grades", "files", ("system", "query", "aspect")),
}
"""Runs and logs are systems."""

JUDGED_NOTE = (
    "no passage is labelled: the reader itself says which are relevant, so none can be found to mislead it; "
    "labels, or a larger model as judge (relevance = {model = …}), say more"
)
"""What comes of asking one small model for both judgments that utility is made of."""
CONTAINMENT_NOTE = (
    "no passage is labelled: those that contain an accepted answer count as relevant; labels, or a larger model as "
    "judge (relevance = {model = …}), say more"
)
"""What stands in for labels where there are accepted answers."""

K = 5
LIMIT_ABOVE = 200
"""From so many queries on, a model is asked about :data:`FIRST_LIMIT` at first."""
FIRST_LIMIT = 100
GRADED_LIMIT = 2000
"""Queries that are evaluated at first where the data has answers, which are graded without a model."""

ENGLISH_WORDS = frozenset(["the", "of", "and", "to", "in", "a", "is", "was", "for", "that", "with", "as", "on", "by"])
OTHER_QUERIES = "none of its queries is among those that are evaluated"
BY_TEXT = ": to go by their texts, map the ids to them, such as --map query=question"


@dataclass
class WorkspacePlan:
    """The tables of a workspace, and what there is to say about them."""

    tables: dict[str, dict[str, TomlValue]] = field(default_factory=dict)
    used: list[tuple[str, str]] = field(default_factory=list)
    """What it is, and the file it comes from."""
    assumed: list[str] = field(default_factory=list)
    unused: list[str] = field(default_factory=list)
    lacking: list[str] = field(default_factory=list)
    file_names: dict[str, str] = field(default_factory=dict)
    """The name of each run or log, by its path."""
    systems_known: bool = False
    """Whether there is a system to evaluate."""

    def set(self, table: str, key: str, value: TomlValue) -> None:
        self.tables.setdefault(table, {})[key] = value

    def has(self, table: str, key: str) -> bool:
        return key in self.tables.get(table, {})


def plan_workspace(files: Sequence[ReadFile]) -> WorkspacePlan:
    """Decide what to evaluate, out of the files there are."""
    return _Planner(files).plan


def distinct_names(paths: Sequence[str]) -> list[str]:
    """Return names of runs or logs: those of their files, or of the first folders that differ if some are the same."""
    names = [run_name(path) for path in paths]
    if len(set(names)) == len(names):
        return names
    folders = [PurePosixPath(path).parts[:-1] for path in paths]
    for level in zip(*folders, strict=False):
        if len(set(level)) == len(paths):
            return list(level)
    for at, places in enumerate(folders):
        for place in reversed(places):
            if names[at] in names[:at]:
                names[at] = f"{place}/{names[at]}"
    return names


class _Planner:
    """Takes the files one after the other; each must fit to those before it."""

    def __init__(self, files: Sequence[ReadFile]) -> None:
        self.plan, self.files = WorkspacePlan(), files
        self.texts = Collection()
        self.queries: set[str] = set()
        """The queries that are evaluated: those of the first file that has some."""
        self.rows: set[tuple[str, ...]] = set()
        """Rows of the files of which there may be several."""
        self.aspects: set[str] = set()
        """Aspects that are judged already."""
        self.names: set[str] = set()
        """The systems, also those of files with several."""
        self.answered = self.graded = False
        """Whether a log has answers, and grades of them."""
        self._take("collection", "queries")
        self._systems()
        self._take("references", "passages", "answers", "subquestions", "ratings", "qrels", "judgments")
        if self.texts.relevance is not None:
            self.aspects.add("relevance")
        self._pipelines()
        self._take("written", "outcomes")
        self._tasks()
        self.plan.systems_known = bool(self.names or self.answered or "grades" in self.plan.tables)

    def _of(self, kind: Kind) -> list[ReadFile]:
        return [each for each in self.files if each.kind == kind]

    def _take(self, *kinds: Kind) -> None:
        """Give the files of these kinds their keys, or say why they are left out."""
        for each in (file for kind in kinds for file in self._of(kind)):
            place = PLACES[each.kind]
            if why := self._conflict(each, place) or self._misfit(each, self._queries_of(each)):
                self._leave_out(each, why)
                continue
            files = self.plan.tables.get(place.table, {}).get(place.key, [])
            several = [*(files if isinstance(files, list) else [str(files)]), each.spec]
            one = not place.rows or (each.kind == "qrels" and len(several) == 1)
            self.plan.set(place.table, place.key, each.spec if one else several)
            self._use(each, KIND_NAMES[each.kind])
            if each.kind == "collection":
                self.names |= set(each.systems)
            if place.rows:
                self.rows |= self._rows_of(each, place)
            if "passage" in place.rows:
                self.aspects |= set(each.frame["aspect"])

    def _leave_out(self, each: ReadFile, why: str) -> None:
        self.plan.unused.append(f"{each.name} ({KIND_NAMES[each.kind]}): {why}")

    def _use(self, each: ReadFile, words: str) -> None:
        self.plan.used.append((words, each.name))
        if each.doubt:
            self.plan.assumed.append(f"{each.name}: {each.doubt}")
        for name, column in (each.columns or {}).items():
            self.plan.set("columns", name, column)

    def _conflict(self, each: ReadFile, place: Place) -> str:
        """Say which other file has the place of a file, or its rows; empty if none does."""
        whole = any(words == KIND_NAMES["collection"] for words, _ in self.plan.used)
        if each.kind in ("queries", "passages") and whole:
            return "the collection that comes in one piece has texts"
        if each.kind == "qrels" and self.texts.relevance is not None:
            return "the collection that comes in one piece has labels"
        if place.rows:
            again = bool(self._rows_of(each, place) & self.rows)
            return f"it has {KIND_NAMES[each.kind]} that another file has, too" if again else ""
        return f"{self.plan.tables[place.table][place.key]} is used" if self.plan.has(*place[:2]) else ""

    def _misfit(self, each: ReadFile, queries: set[str]) -> str:
        """Say why a file doesn't belong to the others; else add its texts to theirs, and return nothing."""
        if each.kind in ("written", "outcomes") and self.names and not self.names & set(each.systems):
            few = format_list([quote_short(name, 24) for name in each.systems], 3)
            return f"it is of {few}; no system is called so: name them alike"
        texts = self._texts_of(each)
        if each.kind == "references" and not texts.answers.height:
            return OTHER_QUERIES
        if self.queries and queries and not self.queries & queries:
            return f"{OTHER_QUERIES}{self._same_texts(each)}"
        try:
            self.texts = merge_collections([self.texts, texts])
        except TableError as error:
            about_query = error.found.startswith("two texts for query")
            return f"{error.found}{self._same_texts(each) if about_query else ''}"
        self.queries = self.queries or set(texts.queries["query"])
        return ""

    def _texts_of(self, each: ReadFile) -> Collection:
        if each.kind != "references":
            return each.texts
        return match_references(each.texts, [log.log for log in self._of("log") if log.log is not None])

    def _queries_of(self, each: ReadFile) -> set[str]:
        """The queries of a file, under the ids of the evaluation if it has only questions."""
        if each.kind in ("written", "outcomes"):
            return set(match_questions(each.frame, self.texts.queries)["query"])
        return set(self._texts_of(each).queries["query"]) if each.kind == "references" else each.queries

    def _rows_of(self, each: ReadFile, place: Place) -> set[tuple[str, ...]]:
        """The keys of the rows of labels or outcomes."""
        frame = match_questions(each.frame, self.texts.queries) if each.kind == "outcomes" else each.frame
        return {(place.rows[0], *row) for row in frame.select(place.rows).iter_rows()}

    def _same_texts(self, each: ReadFile) -> str:
        """Advice for a log with questions that are evaluated, under other ids."""
        mine, others = ({plain_text(text) for text in texts.queries["text"]} for texts in (each.texts, self.texts))
        return "; but it has the same questions" + BY_TEXT if each.kind == "log" and mine & others else ""

    def _systems(self) -> None:
        """Runs and logs, by the names of their files. Files with several systems name them."""
        runs = [*self._of("run"), *self._of("log")]
        if not self.queries:  # logs with most queries first: they say what the evaluation is about
            runs.sort(key=lambda each: -each.texts.queries["query"].n_unique())
        paths = list(dict.fromkeys(each.name for each in runs))
        self.plan.file_names = dict(zip(paths, distinct_names(paths), strict=True))
        files = 0
        """Those with several systems."""
        for each in runs:
            names = each.systems if len(each.systems) > 1 else [self._name_of(each)]
            if twice := sorted(self.names & set(names)):
                few = format_list([quote_short(name, 24) for name in twice], 3)
                self._leave_out(each, f"another file has systems of the same name ({few})")
                continue
            if why := self._misfit(each, each.queries):
                self._leave_out(each, why)
                continue
            words = f"{KIND_NAMES[each.kind]}, called {quote_short(names[0], 40)}"
            if len(names) > 1:
                files += 1
                words = f"{KIND_NAMES[each.kind].removeprefix('a ')}s of {len(names)} systems"
            every = EVERY_SYSTEM if files == 1 else f"{EVERY_SYSTEM}{files}"
            self.plan.set("systems", every if len(names) > 1 else names[0], {"run": each.spec})
            self.names |= set(names)
            self._use(each, words + _describe_log(each))
            self.answered |= each.log is not None and each.log.answers is not None
            self.graded |= each.log is not None and each.log.outcomes is not None

    def _name_of(self, each: ReadFile) -> str:
        """The name of the only system in a file: its own in a log that says it, if it is free, or that of the file."""
        own, of_file = each.systems[0], self.plan.file_names[each.name]
        named = own not in (run_name(each.name), run_name(PurePosixPath(each.name).name))
        return own if each.kind == "log" and named and own not in self.names else of_file

    def _pipelines(self) -> None:
        """Where nobody retrieved: systems that can be built here."""
        if self.names or self._of("written") or self._of("outcomes"):
            return  # there are runs, the collection brings its own, or those with answers or grades are the systems
        if not (self.texts.passages.height and self.texts.queries.height):
            self.plan.lacking.append("systems: runs, or texts of queries and passages to retrieve with BM25")
            return
        english = _is_english(self.texts.passages["text"].head(200).to_list())
        bm25 = 'bm25(stopwords="english")' if english else "bm25"
        made = {"bm25": f"{bm25} % {K}", "reversed": f"{bm25} % {K} >> reversed"}
        if "relevance" in self.aspects:
            made |= {"oracle": f"oracle % {K}", "adversary": f"{bm25} >> adversary % {K}"}
        made["random"] = f"random % {K}"
        for name, pipeline in made.items():
            self.plan.set("systems", name, pipeline)
        self.names = set(made)
        self.plan.set("metrics", "baseline", "bm25")
        self.plan.assumed.append(f"no run was found: {format_list(list(made))} are built here")
        if english:
            self.plan.assumed.append("the passages look English: bm25 leaves out English stop words")

    def _tasks(self) -> None:
        """Ask the model for what isn't known yet, as far as there are texts to ask about."""
        plan, texts, known = self.plan, self.texts, self.aspects
        readable = bool(texts.queries.height and texts.passages.height)
        rated = plan.has("collection", "ratings") or texts.ratings is not None
        if readable:
            plan.set("", "model", "embedded")
            if "abstention" not in known:
                plan.set("judgments", "abstention", True)
            if "relevance" not in known:
                plan.set("judgments", "relevance", True if texts.answers.height else {"graded": True})
                plan.assumed.append(CONTAINMENT_NOTE if texts.answers.height else JUDGED_NOTE)
            if texts.subquestions.height and not rated:
                plan.set("judgments", "ratings", True)
            if texts.answers.height and not self.answered:
                plan.tables.setdefault("answers", {})
            elif "answers" not in plan.tables and not self.answered:
                plan.lacking.append("accepted answers: no answers are asked for, since nothing could grade them")
        if texts.answers.height and (self.answered or "answers" in plan.tables):
            plan.set("grades", "deterministic", True)
        if readable:
            self._limit()
        elif self.names:
            plan.lacking.append(
                "passages: answers are compared, and nothing is said of what passages are worth"
                if texts.queries.height and self.answered
                else "texts of queries and passages: nothing is asked of a model without them"
            )
        graded = self.answered or "grades" in plan.tables or "answers" in plan.tables
        if not (known or readable or rated or graded):
            plan.lacking.append("relevance labels, judgments or ratings: no metric can be computed without them")
        if plan.tables:
            plan.set("", "k", K)

    def _limit(self) -> None:
        """Where there are many queries, ask the model about some. Answers in the data cost nothing to compare."""
        number = self.texts.queries.height
        if number <= LIMIT_ABOVE:
            return
        compared = self.graded or "grades" in self.plan.tables
        to_write = "file" not in self.plan.tables.get("answers", {"file": ""})
        many = "there are many queries"
        if not compared or to_write:
            self.plan.set("", "limit", FIRST_LIMIT)
            self.plan.assumed.append(f"{many}: at most the first {FIRST_LIMIT} are evaluated (--all: all)")
            return
        if number > GRADED_LIMIT:
            self.plan.set("", "limit", GRADED_LIMIT)
        self.plan.set("", "judged_queries", FIRST_LIMIT)
        first = f"at most the first {GRADED_LIMIT:,}" if number > GRADED_LIMIT else "all"
        self.plan.assumed.append(
            f"{many}: {first} are compared by their answers; a model, if one is asked, judges the "
            f"passages of at most {FIRST_LIMIT} of them, drawn at random (--all: all)"
        )


def _describe_log(each: ReadFile) -> str:
    """What a log has besides contexts."""
    log = each.log
    if log is None or each.kind != "log":
        return ""
    parts = [
        "contexts" if log.contexts is not None else "",
        "answers" if log.answers is not None else "",
        "accepted answers" if log.collection.answers.height else "",
        f"grades ({format_list(log.outcomes.distinct('aspect'), 3)})" if log.outcomes is not None else "",
        "relevance labels" if log.collection.relevance is not None else "",
    ]
    return f", with {format_list([part for part in parts if part], 9)}"


def _is_english(texts: list[str]) -> bool:
    """Whether texts are full of English function words."""
    words = [word for text in texts for word in re.findall(r"\w+", text.lower())]
    return sum(word in ENGLISH_WORDS for word in words) > 0.12 * len(words)
