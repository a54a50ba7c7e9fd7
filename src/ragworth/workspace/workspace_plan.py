"""From what was found in a folder to what is set in its file; what is left out, and why, is remembered."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import PurePosixPath

from ragworth.core.errors import TableError, format_list, quote_short
from ragworth.data import Judgments
from ragworth.data.collection import Collection, match_questions, merge_collections, plain_text
from ragworth.formats.files import run_name
from ragworth.workspace.beir_folders import BeirFolder
from ragworth.workspace.config import EVERY_SYSTEM
from ragworth.workspace.guesses import KIND_NAMES, FileKind
from ragworth.workspace.recognition import RecognisedFile
from ragworth.workspace.references import match_references
from ragworth.workspace.toml import TomlValue

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
WORDS_PATTERN = re.compile(r"\w+")


@dataclass
class WorkspacePlan:
    """What is set, and what there is to say about it."""

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


OTHER_QUERIES = "none of its queries is among those that are evaluated"
BY_TEXT = ": to go by their texts, map the ids to them, such as --map query=question"


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


def plan_workspace(files: list[RecognisedFile], beir: list[BeirFolder]) -> WorkspacePlan:
    """What to evaluate, out of what there is."""
    return _WorkspacePlanner(files, beir).plan


class _WorkspacePlanner:
    def __init__(self, found: list[RecognisedFile], beir: list[BeirFolder]) -> None:
        self.plan = WorkspacePlan()
        self.found = found
        self.texts = Collection()
        self.queries: frozenset[str] | None = None
        """The queries that are evaluated, where all are known."""
        self.labels: list[RecognisedFile] = []
        self.systems: dict[str, TomlValue] = {}
        self.names: set[str] = set()
        """What systems are called, those included that come out of a file with several."""
        self.answered: set[str] = set()
        """Systems whose answers are in a log."""
        self.graded = False
        """Whether a log has grades."""
        self._whole(beir)
        self._runs()
        self._references()
        self._parts()
        self._labels()
        self._pipelines()
        self._answers()
        self._tasks()
        self.plan.systems_known = bool(self.names or self.answered or "grades" in self.plan.tables)
        for each in found:
            if each.doubt and any(name == each.name for _, name in self.plan.used):
                self.plan.assumed.append(f"{each.name}: {each.doubt}")

    def _of(self, kind: FileKind) -> list[RecognisedFile]:
        return [each for each in self.found if each.kind == kind]

    def _use(self, each: RecognisedFile, table: str, key: str, value: TomlValue) -> None:
        self.plan.set(table, key, value)
        self.plan.used.append((KIND_NAMES[each.kind], each.name))

    def _leave(self, each: RecognisedFile, why: str) -> None:
        self.plan.unused.append(f"{each.name} ({KIND_NAMES[each.kind]}): {why}")

    def _adds(self, each: RecognisedFile) -> bool:
        """Whether a file is about the queries of this evaluation and contradicts no text; else it is left out."""
        mine = each.queries if each.whole else set()
        if self.queries is not None and mine and not self.queries & mine:
            self._leave(each, f"{OTHER_QUERIES}{self._same_texts(each)}")
            return False
        try:
            self.texts = merge_collections([self.texts, each.texts])
        except TableError as error:
            about_query = error.found.startswith("two texts for query")
            self._leave(each, f"{error.found}{self._same_texts(each) if about_query else ''}")
            return False
        return True

    def _same_texts(self, each: RecognisedFile) -> str:
        """Advice for a log with questions that are evaluated, under other ids."""
        mine, others = ({plain_text(text) for text in texts.queries["text"]} for texts in (each.texts, self.texts))
        return "; but it has the same questions" + BY_TEXT if each.kind == "log" and mine & others else ""

    def _whole(self, beir: list[BeirFolder]) -> None:
        """A collection that comes in one piece."""
        for number, folder in enumerate(beir):
            if number:
                self.plan.unused.append(f"{folder.name} (BEIR folder): another one is used")
                continue
            self.plan.set("collection", "from", folder.spec)
            self.plan.used.append(("BEIR folder", folder.name))
            self.texts = folder.texts
            if folder.doubt:
                self.plan.assumed.append(f"{folder.name}: {folder.doubt}")
            if folder.whole:
                self.queries = frozenset(folder.texts.queries["query"])
        for each in self._of("exam"):
            if "collection" in self.plan.tables:
                self._leave(each, "another collection is used")
                continue
            self._use(each, "collection", "from", each.spec)
            self.texts = each.texts
            if each.frame.height:
                self.names |= set(each.frame["system"])
        if "collection" not in self.plan.tables:
            self._one("queries")
        if self.texts.queries.height and self.queries is None:
            asked = [each for each in self._of("queries") if self.plan.tables["collection"].get("queries") == each.spec]
            if asked and asked[0].whole:
                self.queries = frozenset(asked[0].frame["query"])

    def _one(self, kind: FileKind) -> None:
        """One file of a kind for the collection: the first that fits."""
        for each in self._of(kind):
            if kind in self.plan.tables.get("collection", {}):
                self._leave(each, f"{self.plan.tables['collection'][kind]} is used")
            elif self._adds(each):
                self._use(each, "collection", kind, each.spec)

    def _runs(self) -> None:
        """Runs by the names of their files; of several files with many systems, the first."""
        runs = [*self._of("run"), *self._of("log")]
        if self.queries is None:  # logs with most queries first: they say what the evaluation is about
            runs.sort(key=lambda each: -each.texts.queries["query"].n_unique())
        several: list[str] = []
        paths = list(dict.fromkeys(each.name for each in runs))
        self.plan.file_names = dict(zip(paths, distinct_names(paths), strict=True))
        for each in runs:
            names = each.systems
            if len(names) > 1 and (taken := self.names & set(names)):
                few = format_list([quote_short(name, 24) for name in sorted(taken)], 3)
                self._leave(each, f"it has several systems, and another file has some of the same name ({few})")
                continue
            if not self._adds(each):
                continue
            if self.queries is None and each.whole and each.texts.queries.height:
                self.queries = frozenset(each.texts.queries["query"])
            if len(names) > 1 or (self._names_systems(each) and not each.whole and names[0] not in self.names):
                several.append(each.spec)
                self.systems[EVERY_SYSTEM] = {"run": several if len(several) > 1 else each.spec}
                number = f"{len(names)} systems" if each.whole else f"{len(names)} or more systems"
                words = f"{KIND_NAMES[each.kind].removeprefix('a ')}s of {number}"
            else:
                names = [self._named(each, names[0])]
                self.systems[names[0]] = {"run": each.spec}
                words = f"{KIND_NAMES[each.kind]}, called {quote_short(names[0], 40)}"
            self.names |= set(names)
            self.plan.used.append((words + _log_contents(each), each.name))
            self._map_columns(each)
            self._given(each, names)

    def _map_columns(self, each: RecognisedFile) -> None:
        for field_name, column in (each.columns or {}).items():
            self.plan.set("columns", field_name, column)

    def _given(self, each: RecognisedFile, names: list[str]) -> None:
        """Remember the answers and labels that a log brings."""
        if each.log is not None and each.log.answers is not None:
            self.answered |= set(names)
        self.graded |= each.log is not None and each.log.outcomes is not None

    def _names_systems(self, each: RecognisedFile) -> bool:
        """Whether a log names its systems itself; others may follow after its beginning."""
        names = (run_name(each.name), run_name(PurePosixPath(each.name).name))
        return each.kind == "log" and not set(each.systems) & set(names)

    def _named(self, each: RecognisedFile, own: str) -> str:
        """A name for the system of a file that no other has: its own in a log that names it, or after the file."""
        places = PurePosixPath(each.name).parts[:-1]
        name = own if self._names_systems(each) else self.plan.file_names[each.name]
        for place in reversed(places):
            if name not in self.names | {EVERY_SYSTEM}:
                break
            name = f"{place}/{name}"
        number, free = 2, name
        while free in self.names | {EVERY_SYSTEM}:
            free, number = f"{name}-{number}", number + 1
        return free

    def _references(self) -> None:
        """Questions with accepted answers, for the systems of logs."""
        logs = [each.log for each in self._of("log") if each.log is not None]
        for each in self._of("references"):
            matched = match_references(each.texts, logs)
            if "from" in self.plan.tables.get("collection", {}):
                self._leave(each, f"{self.plan.tables['collection']['from']} is used")
            elif not matched.answers.height:
                self._leave(each, OTHER_QUERIES)
            elif self._adds(each._replace(texts=matched, frame=matched.answers)):
                self._use(each, "collection", "from", each.spec)
                self._map_columns(each)
                if self.queries is None and each.whole:
                    self.queries = frozenset(matched.queries["query"]) or None

    def _parts(self) -> None:
        """Texts and ratings that no whole collection brings."""
        references = {each.spec for each in self._of("references")}
        if self.plan.tables.get("collection", {}).get("from") not in {None, *references}:
            for each in [*self._of("queries"), *self._of("passages")]:
                self._leave(each, "the collection that comes in one piece has texts")
        else:
            self._one("passages")
        self._one("answers")
        self._one("subquestions")
        self._one("ratings")

    def _labels(self) -> None:
        """Relevance labels and other judgments, each (query, passage, aspect) from one file."""
        seen: set[tuple[str, ...]] = set()
        files: dict[str, list[str]] = {"qrels": [], "judgments": []}
        given = self.texts.relevance
        for each in [*self._of("qrels"), *self._of("judgments")]:
            rows = set(each.frame.select(Judgments.key).iter_rows())
            if each.kind == "qrels" and given is not None:
                self._leave(each, "the collection that comes in one piece has labels")
            elif rows & seen:
                self._leave(each, "it judges again what another file judges")
            elif self._adds(each):
                seen |= rows
                files[each.kind].append(each.spec)
                self.labels.append(each)
                self.plan.used.append((KIND_NAMES[each.kind], each.name))
        for (table, key), some in {
            ("collection", "qrels"): files["qrels"],
            ("judgments", "files"): files["judgments"],
        }.items():
            if some:
                self.plan.set(table, key, some[0] if len(some) == 1 and key == "qrels" else some)

    def _aspects(self) -> set[str]:
        """What is judged already."""
        known = {aspect for each in self.labels for aspect in each.frame["aspect"].unique()}
        return known | ({"relevance"} if self.texts.relevance is not None else set())

    def _rated(self) -> bool:
        return "ratings" in self.plan.tables.get("collection", {}) or self.texts.ratings is not None

    def _pipelines(self) -> None:
        """Where nobody retrieved: systems that can be built here."""
        if self.systems:
            self.plan.tables["systems"] = self.systems
            return
        if self.names or self._of("written") or self._of("outcomes"):
            return  # the collection brings its own, or those with answers or grades are the systems
        if not (self.texts.passages.height and self.texts.queries.height):
            self.plan.lacking.append("systems: runs, or texts of queries and passages to retrieve with BM25")
            return
        english = _is_english(self.texts.passages["text"].head(200).to_list())
        bm25 = 'bm25(stopwords="english")' if english else "bm25"
        made = {"bm25": f"{bm25} % {K}", "reversed": f"{bm25} % {K} >> reversed"}
        if "relevance" in self._aspects():
            made |= {"oracle": f"oracle % {K}", "adversary": f"{bm25} >> adversary % {K}"}
        made["random"] = f"random % {K}"
        for name, pipeline in made.items():
            self.plan.set("systems", name, pipeline)
        self.names = set(made)
        self.plan.set("metrics", "baseline", "bm25")
        self.plan.assumed.append(f"no run was found: {format_list(list(made))} are built here")
        if english:
            self.plan.assumed.append("the passages look English: bm25 leaves out English stop words")

    def _answers(self) -> None:
        """Answers of systems and outcomes of answers that are there already."""
        seen: set[tuple[str, ...]] = set()
        outcomes: list[str] = []
        for found in [*self._of("written"), *self._of("outcomes")]:
            each = found._replace(frame=match_questions(found.frame, self.texts.queries))
            rows = set(each.frame.select("system", "query", "aspect").iter_rows()) if each.kind == "outcomes" else set()
            if self.names and not self.names & set(each.frame["system"]):
                few = format_list(
                    [quote_short(name, 24) for name in each.frame["system"].unique(maintain_order=True)], 3
                )
                self._leave(each, f"it is of {few}; no system is called so: name them alike")
            elif each.kind == "written" and "file" in self.plan.tables.get("answers", {}):
                self._leave(each, f"{self.plan.tables['answers']['file']} is used")
            elif rows & seen:
                self._leave(each, "it has outcomes that another file has, too")
            elif not self._adds(each):
                continue
            elif each.kind == "written":
                self._use(each, "answers", "file", each.spec)
            else:
                seen |= rows
                outcomes.append(each.spec)
                self._use(each, "grades", "files", outcomes)

    def _tasks(self) -> None:
        """What the model is asked: what is not known yet, as far as there are texts to ask about."""
        plan, texts, known = self.plan, self.texts, self._aspects()
        readable = bool(texts.queries.height and texts.passages.height)
        if readable:
            plan.set("", "model", "embedded")
            if "abstention" not in known:
                plan.set("judgments", "abstention", True)
            if "relevance" not in known:
                plan.set("judgments", "relevance", True if texts.answers.height else {"graded": True})
                plan.assumed.append(CONTAINMENT_NOTE if texts.answers.height else JUDGED_NOTE)
            if (
                texts.subquestions.height
                and "ratings" not in plan.tables.get("collection", {})
                and texts.ratings is None
            ):
                plan.set("judgments", "ratings", True)
            if texts.answers.height and not self.answered:
                plan.tables.setdefault("answers", {})
            elif "answers" not in plan.tables and not self.answered:
                plan.lacking.append("accepted answers: no answers are asked for, since nothing could grade them")
        if texts.answers.height and (self.answered or "answers" in plan.tables):
            plan.set("grades", "deterministic", True)
        if readable:
            self._limit()
        if not readable and self.names:
            plan.lacking.append(
                "passages: answers are compared, and nothing is said of what passages are worth"
                if texts.queries.height and self.answered
                else "texts of queries and passages: nothing is asked of a model without them"
            )
        graded = self.answered or "grades" in plan.tables or "answers" in plan.tables
        if not known and not readable and not self._rated() and not graded:
            plan.lacking.append("relevance labels, judgments or ratings: no metric can be computed without them")
        if plan.tables:
            plan.set("", "k", K)

    def _limit(self) -> None:
        """Where there are many queries, ask the model about some. Answers in the data cost nothing to compare."""
        number, known = self.texts.queries.height, self.queries is not None
        if not number or (known and number <= LIMIT_ABOVE):
            return
        many = "there are many queries" if number > LIMIT_ABOVE else "a long file may have many queries"
        compared = self.graded or "grades" in self.plan.tables
        to_write = "file" not in self.plan.tables.get("answers", {"file": ""})
        if not compared or to_write:
            self.plan.set("", "limit", FIRST_LIMIT)
            self.plan.assumed.append(f"{many}: at most the first {FIRST_LIMIT} are evaluated (--all: all)")
            return
        if not known or number > GRADED_LIMIT:
            self.plan.set("", "limit", GRADED_LIMIT)
        self.plan.set("", "judged_queries", FIRST_LIMIT)
        first = f"at most the first {GRADED_LIMIT:,}" if "limit" in self.plan.tables[""] else "all"
        self.plan.assumed.append(
            f"{many}: {first} are compared by their answers; a model, if one is asked, judges the "
            f"passages of at most {FIRST_LIMIT} of them, drawn at random (--all: all)"
        )


def _log_contents(each: RecognisedFile) -> str:
    """What a log has besides contexts."""
    log = each.log
    if log is None:
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
    words = [word for text in texts for word in WORDS_PATTERN.findall(text.lower())]
    return sum(word in ENGLISH_WORDS for word in words) > 0.12 * len(words)
