"""docs/tutorial.md: the first 20 questions of the demo, as a reader of the page evaluates them."""

import re
import shutil
from collections.abc import Sequence
from pathlib import Path

from figures.declare import MODEL, Shown, figure
from figures.demo import Evaluated, evaluated
from figures.running import ROOT, Run

MORE = """\
stemmed = 'bm25(stopwords="english", stemmer="english") % 5'  # "ferries" finds "ferry"
few = 'bm25(stopwords="english", stemmer="english") % 2'  # and only the first two
"""


def help_desk(run: Run) -> Path:
    """The folder of the page's first commands, anew."""
    folder = run.work / "help-desk"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    source = ROOT / "examples" / "demo"
    for name in ("passages.jsonl", "qrels.txt"):
        shutil.copy(source / name, folder)
    lines = (source / "queries.jsonl").read_text(encoding="utf-8").splitlines(keepends=True)
    (folder / "queries.jsonl").write_text("".join(line for line in lines if '"_id": "q' in line), encoding="utf-8")
    run.forget(folder)
    run.output(f"ragworth init {folder}")
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


@figure("the commands of the page, from `mkdir help-desk` on", seconds=300, needs=MODEL)
def steps(run: Run) -> Shown:
    folder = help_desk(run)
    some = run.pick("--limit 20", "--limit 6")
    plan = run.output(f"ragworth evaluate {folder} {some} --dry-run --quiet")
    yield "plan", f"```\n{plan.rstrip()}\n```"
    yield "board", printed(run.output(f"ragworth evaluate {folder} {some} --quiet"))
    found = evaluated(run, folder, some)
    (note,) = [note for note in found.stages["annotate.abstention"]["notes"] if note.startswith("control questions")]
    yield "controls", f"`{note.partition(': ')[2]}`"
    yield "lacking", str(found.diagnosis("nothing relevant retrieved", "bm25").n)
    yield "misled", str(found.diagnosis("misled by a distractor", "bm25").n)
    yield "unused", str(found.diagnosis("relevant, but unused by the model", "bm25").n)
    settings = folder / "ragworth.toml"
    settings.write_text(
        settings.read_text(encoding="utf-8").replace("\n[systems]\n", f"\n[systems]\n{MORE}", 1), encoding="utf-8"
    )
    run.forget(folder)
    more = evaluated(run, folder, some)
    yield "new-passages", str(more.stages["annotate.abstention"]["calls"])
    yield "new-answers", str(more.stages["answer"]["calls"])
    yield "changed", printed(run.output(f"ragworth evaluate {folder} {some} --quiet"), "stemmed", "bm25", "few")
    yield from bare(more)


def bare(found: Evaluated) -> Shown:
    for name in ("few", "bm25"):
        yield f"{name}-ndcg", re.findall(r"[\d.]+", found.mean(name, "nDCG@5"))[0]
