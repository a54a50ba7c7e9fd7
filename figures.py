"""Write what is computed: the command reference, metric pages, retrieval steps; the numbers of README and tutorial.

    python -m figures                      # docs/commands.md, docs/metrics and docs/retrieval.md: seconds, no model
    python -m figures README.md            # runs the demo with the embedded model: minutes
    python -m figures docs/tutorial.md     # the same with the commands of the tutorial
    python -m figures --check              # write nothing; exit code 1 if a page is out of date

README, tutorial and the page on retrieval mark what is computed, in comments that readers don't see:

    <!-- figure: steps.board -->

    | system | nDCG@5 |
    …

    <!-- end figure -->

    UDCG@5 has <!--=demonstration.udcg-->0.65<!--/-->.

Workspaces and stored calls stay in build/figures, so the second run asks no model again.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import Field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import ragworth
from ragworth.metrics import METRICS
from ragworth.report.reference_pages import metric_index, metric_page

ROOT = Path(__file__).resolve().parent
WORK = ROOT / "build" / "figures"
DEMO = ROOT / "examples" / "demo"
BROWSERS = ("chromium", "chromium-browser", "google-chrome")
BLOCK = re.compile(r"<!-- figure: ([\w.-]+) -->\n(.*?)<!-- end figure -->", re.DOTALL)
INLINE = re.compile(r"<!--=([\w.-]+)-->(.*?)<!--/-->", re.DOTALL)
SHOWS = {
    "oracle": "only passages that answer",
    "bm25": "what BM25 finds",
    "reordered": "the same passages, the best ones last",
    "random": "anything",
    "adversary": "only passages that look right and are not",
}
MORE = """\
stemmed = 'bm25(stopwords="english", stemmer="english") % 5'  # "ferries" finds "ferry"
few = 'bm25(stopwords="english", stemmer="english") % 2'  # and only the first two
"""
PLACES = {"first": "first", "behind": "behind another", "either": "both"}


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m figures", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("pages", nargs="*", metavar="PAGE", help=f"{', '.join(PAGES)}; without any, the first three")
    parser.add_argument("--check", action="store_true", help="write nothing; exit code 1 if a page is out of date")
    given = parser.parse_args()
    if unknown := [page for page in given.pages if page not in PAGES]:
        parser.error(f"{unknown[0]} is not computed; pages that are: {', '.join(PAGES)}")
    outdated = [
        name
        for page in given.pages or REFERENCE
        for name, text in PAGES[page]()
        if not (path := ROOT / name).exists() or path.read_text(encoding="utf-8") != text
        if given.check or path.write_text(text, encoding="utf-8")
    ]
    if "README.md" in given.pages and not given.check:
        screenshot(WORK / "demo" / "results" / "report.html", ROOT / "docs" / "images" / "report.png")
    for name in outdated:
        print(f"{name}: {'out of date' if given.check else 'written'}")
    return int(given.check and bool(outdated))


# The reference: commands, metrics, steps of retrieval.


def commands() -> Iterator[tuple[str, str]]:
    # In a process of its own, where nothing has changed a command or a registry.
    code = "from ragworth.cli import main; from ragworth.report.reference_pages import command_page as page"
    yield "docs/commands.md", run(sys.executable, "-c", f"{code}; print(page(main))").rstrip() + "\n"


def metrics() -> Iterator[tuple[str, str]]:
    yield "docs/metrics/README.md", metric_index()
    for metric in METRICS:
        yield f"docs/metrics/{metric.name}.md", metric_page(metric)


def retrieval() -> Iterator[tuple[str, str]]:
    from ragworth.judging.contract import options_of
    from ragworth.retrieval import STEPS
    from ragworth.retrieval.pipeline import format_value

    kinds = [(f"`{kind.kind}`", kind.title, PLACES[kind.place], ", ".join(kind.needs) or "–") for kind in STEPS]
    settings = [
        (f"`{kind.kind}`", f"`{each.name}`", f"`{format_value(each.default)}`", takes(each), each.metadata["help"])
        for kind in STEPS
        for each in options_of(kind)
    ]
    yield replaced(
        "docs/retrieval.md",
        {
            "steps.kinds": table(("kind", "what it gives", "stands", "needs"), kinds, "llll"),
            "steps.settings": table(("kind", "setting", "default", "may be", "meaning"), settings, "lllll"),
        },
    )


def takes(each: Field[Any]) -> str:
    """What a setting of a step may be."""
    low, high, choices = (each.metadata[name] for name in ("low", "high", "choices"))
    if choices:
        return ", ".join(choices)
    if isinstance(each.default, bool | str):
        return "true, false" if isinstance(each.default, bool) else "a text"
    number = "a whole number" if isinstance(each.default, int) else "a number"
    if low is None and high is None:
        return number
    return f"{number}, {low:g} or more" if high is None else f"{number} from {low:g} to {high:g}"


# Pages with marked regions.


def replaced(page: str, texts: Mapping[str, str]) -> tuple[str, str]:
    """The page with new text in its regions; each region has a text, and each text a region."""
    text = (ROOT / page).read_text(encoding="utf-8")
    names = {name for pattern in (BLOCK, INLINE) for name, _ in pattern.findall(text)}
    if differing := sorted(names ^ texts.keys()):
        raise ValueError(f"{page}: {differing[0]} is {'not computed' if differing[0] in names else 'not on the page'}")
    text = BLOCK.sub(lambda found: f"<!-- figure: {found[1]} -->\n\n{texts[found[1]]}\n\n<!-- end figure -->", text)
    return page, INLINE.sub(lambda found: f"<!--={found[1]}-->{texts[found[1]]}<!--/-->", text)


def table(head: Iterable[str], rows: Iterable[Iterable[str]], sides: str) -> str:
    """A Markdown table; ``sides`` has ``l`` or ``r`` for each column."""
    rule = ["---:" if side == "r" else "---" for side in sides]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in (head, rule, *rows))


def source() -> str:
    """Date and machine of the numbers."""
    machine = platform.machine().replace("_", "-")
    return f"{datetime.now(UTC).date().isoformat()}, ragworth {ragworth.__version__}, {machine}, {os.cpu_count()} cores"


# Commands and what they say.


def run(*words: str) -> str:
    """What a command prints."""
    paths = os.pathsep.join([str(ROOT / "src"), os.environ.get("PYTHONPATH", "")])
    settings = os.environ | {"PYTHONPATH": paths, "COLUMNS": "200", "NO_COLOR": "1"}
    return subprocess.run(words, cwd=ROOT, env=settings, stdout=subprocess.PIPE, text=True, check=True).stdout


def call(*words: str) -> str:
    """What ``ragworth`` prints with these arguments."""
    return run(sys.executable, "-m", "ragworth", *words)


class Evaluated:
    """A workspace that was evaluated: what the command says, its results, and its report."""

    def __init__(self, folder: Path, *options: str) -> None:
        facts: Mapping[str, Any] = json.loads(call("evaluate", str(folder), "--json", "--quiet", *options))
        self.systems: dict[str, Mapping[str, Any]] = {each["system"]: each for each in facts["systems"]}
        self.stages: dict[str, Mapping[str, Any]] = {each["name"]: each for each in facts["stages"]}
        self.report = (folder / "results" / "report.md").read_text(encoding="utf-8")
        self.results = ragworth.Results.read(folder / "results")

    def mean(self, system: str, metric: str, *, interval: bool = False) -> str:
        mean = self.systems[system]["metrics"][metric]
        ends = f" [{mean['low']:.3f}, {mean['high']:.3f}]" if interval else ""
        return f"{mean['mean']:.3f}{ends}"

    def diagnosis(self, finding: str, system: str) -> tuple[int, int]:
        """How many queries of a system have a finding, and of how many."""
        lines = [line for line in self.report.partition("# Diagnosis\n")[2].splitlines() if line.startswith("|")]
        head, row = (
            [cell.strip() for cell in line.split("|")]
            for line in (lines[0], next(line for line in lines if line.startswith(f"| {system} |")))
        )
        count, _, total = row[head.index(finding)].partition(" of ")
        return int(count), int(total)

    def grades(self, system: str) -> dict[str, int]:
        """How many answers of a system are correct, abstained, wrong."""
        assert self.results.outcomes is not None
        values = self.results.outcomes.frame.filter(system=system, aspect="grade")["value"].drop_nulls().to_list()
        return {name: values.count(value) for name, value in (("correct", 1), ("abstained", 0), ("wrong", -1))}

    def share(self, system: str, grade: str) -> str:
        counts = self.grades(system)
        return f"{100 * counts[grade] / max(1, sum(counts.values())):.0f} %"

    def correlation(self, metric: str) -> tuple[float, float, float]:
        """ρ of a metric with the grade over all contexts, and the ends of its interval, as in the report."""
        from ragworth.report.page.relations import outcome_predictions

        grade = outcome_predictions(self.results, [metric], 0).filter(outcome="grade")
        ((rho, low, high),) = grade.select("rho", "low", "high").rows()
        return rho, low, high


# README.md: what the demo shows.


def readme() -> Iterator[tuple[str, str]]:
    ignored = shutil.ignore_patterns("results", ".*", "calls*")
    folder = Path(shutil.copytree(DEMO, WORK / "demo", ignore=ignored, dirs_exist_ok=True))
    demo = Evaluated(folder)
    yield replaced("README.md", {**collection(), **demonstration(demo), **alignment(folder), "source": source()})


def collection() -> dict[str, str]:
    (limit,) = re.findall(r"^limit = (\d+)", (DEMO / "ragworth.toml").read_text(encoding="utf-8"), re.MULTILINE)
    lines = (DEMO / "queries.jsonl").read_text(encoding="utf-8").splitlines()[: int(limit)]
    reports = sum(json.loads(line)["_id"].startswith("r") for line in lines)
    passages = len((DEMO / "passages.jsonl").read_text(encoding="utf-8").splitlines())
    counts = {"questions": len(lines) - reports, "reports": reports, "passages": passages}
    return {f"collection.{name}": str(count) for name, count in counts.items()}


def demonstration(demo: Evaluated) -> dict[str, str]:
    rows = [
        (
            system,
            shows,
            demo.mean(system, "nDCG@5"),
            demo.mean(system, "UDCG@5", interval=True),
            demo.share(system, "correct"),
            demo.share(system, "wrong"),
        )
        for system, shows in SHOWS.items()
    ]
    lacking, total = demo.diagnosis("nothing relevant retrieved", "bm25")
    counts = demo.grades("bm25")
    texts = {
        "systems": table(("system", "shows", "nDCG@5", "UDCG@5 [95 % interval]", "correct", "wrong"), rows, "llrrrr"),
        "relevant": f"{total - lacking} of {total}",
        "answers": str(sum(counts.values())),
        "correct": str(counts["correct"]),
        "misled": str(demo.diagnosis("misled by a distractor", "bm25")[0]),
    }
    for metric in ("UDCG@5", "nDCG@5"):
        rho, low, high = demo.correlation(metric)
        name = metric[:4].lower()
        texts |= {name: f"{rho:.2f}", f"{name}-interval": f"{low:.2f} to {high:.2f}".replace("-", "−")}
    return {f"demonstration.{name}": text for name, text in texts.items()}


def alignment(folder: Path) -> dict[str, str]:
    study = json.loads(call("study", "alignment", str(folder), "--json", "--quiet"))
    rows = {row["metric"].partition("@")[0]: row for row in study["tables"]["alignment"]}
    others = [rows[name]["correlation"] for name in ("P", "R", "nDCG(ideal=retrieved)", "RR")]
    distraction = rows["Distraction"]
    texts = {
        "sentence": study["sentences"][0],
        "others": f"{min(others):.2f} to {max(others):.2f}",
        "distraction": f"{distraction['correlation']:.2f} [{distraction['low']:.2f}, {distraction['high']:.2f}]",
        "constant": str(distraction["left out"]),
    }
    return {f"alignment.{name}": text.replace("-", "−") if name == "others" else text for name, text in texts.items()}


def screenshot(page: Path, picture: Path) -> None:
    """The top of an HTML page, if this machine has a browser."""
    browser = next((path for name in BROWSERS if (path := shutil.which(name))), None)
    if browser is None:
        print(f"{picture.relative_to(ROOT)}: stays as it is, since there is no Chromium here")
        return
    options = ["--headless", "--no-sandbox", "--hide-scrollbars", "--window-size=1200,900"]
    run(browser, *options, f"--screenshot={picture}", page.resolve().as_uri())


# docs/tutorial.md: the first 20 questions of the demo, as a reader of the page evaluates them.


def tutorial() -> Iterator[tuple[str, str]]:
    folder = help_desk()
    some = ("--limit", "20")
    plan = call("evaluate", str(folder), *some, "--dry-run", "--quiet")
    board = call("evaluate", str(folder), *some, "--quiet")
    first = Evaluated(folder, *some)
    (note,) = [note for note in first.stages["annotate.abstention"]["notes"] if note.startswith("control questions")]
    settings = folder / "ragworth.toml"
    text = settings.read_text(encoding="utf-8")
    settings.write_text(text.replace("\n[systems]\n", f"\n[systems]\n{MORE}", 1), encoding="utf-8")
    second = Evaluated(folder, *some)
    changed = call("evaluate", str(folder), *some, "--quiet")
    texts = {
        "plan": f"```\n{plan.rstrip()}\n```",
        "board": printed(board),
        "controls": f"`{note.partition(': ')[2]}`",
        "lacking": str(first.diagnosis("nothing relevant retrieved", "bm25")[0]),
        "misled": str(first.diagnosis("misled by a distractor", "bm25")[0]),
        "unused": str(first.diagnosis("relevant, but unused by the model", "bm25")[0]),
        "new-passages": str(second.stages["annotate.abstention"]["calls"]),
        "new-answers": str(second.stages["answer"]["calls"]),
        "changed": printed(changed, "stemmed", "bm25", "few"),
        "few-ndcg": second.mean("few", "nDCG@5"),
        "bm25-ndcg": second.mean("bm25", "nDCG@5"),
    }
    yield replaced("docs/tutorial.md", {f"steps.{name}": text for name, text in texts.items()} | {"source": source()})


def help_desk() -> Path:
    """The folder of the page's first commands, anew."""
    folder = WORK / "help-desk"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    for name in ("passages.jsonl", "qrels.txt"):
        shutil.copy(DEMO / name, folder)
    lines = (DEMO / "queries.jsonl").read_text(encoding="utf-8").splitlines(keepends=True)
    (folder / "queries.jsonl").write_text("".join(line for line in lines if '"_id": "q' in line), encoding="utf-8")
    call("init", str(folder))
    return folder


def printed(output: str, *systems: str) -> str:
    """What the command prints of answers and of passages, without sentences; or some rows of the two tables."""
    answers, _, passages, *_ = output.split("\n\n")
    return "```\n" + "\n\n".join(some_rows(each, systems) for each in (answers, passages)) + "\n```"


def some_rows(text: str, systems: Sequence[str]) -> str:
    """A table, with the line above it; with systems, only its head and their rows."""
    lines = [line.rstrip() for line in text.splitlines()]
    rule = next(number for number, line in enumerate(lines) if line.startswith("─"))
    if systems:
        lines = lines[rule - 1 : rule + 1] + [line for line in lines[rule + 1 :] if line.split()[0] in systems]
    return "\n".join(lines)


PAGES: Mapping[str, Callable[[], Iterator[tuple[str, str]]]] = {
    "docs/commands.md": commands,
    "docs/metrics": metrics,
    "docs/retrieval.md": retrieval,
    "README.md": readme,
    "docs/tutorial.md": tutorial,
}
REFERENCE = ("docs/commands.md", "docs/metrics", "docs/retrieval.md")


if __name__ == "__main__":
    sys.exit(main())
