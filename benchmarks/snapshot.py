"""Every number that one checkout of ragworth computes for some workspaces and files, as text files to compare.

    export RAGWORTH_DATA=FOLDER
    python benchmarks/snapshot.py OUT [--checkout FOLDER|COMMIT]
    python benchmarks/snapshot.py [OUT] --compare OLD|COMMIT     # exit code 1 if something differs

OUT/numbers has every table as CSV, the keys of stages and calls, and the numbers (no words) of everything that was
printed, of JSON files, reports and pages of studies. OUT/texts has all of it in full, so a change of wording leaves
the numbers equal. Numbers have nine significant digits. With --compare, OLD is an earlier OUT; a commit, such as
BEFORE_REDESIGN, is checked out into a temporary worktree and computed first. An existing OUT is compared as it is;
without OUT, the numbers of the checkout go to a temporary folder.

The inputs are those of this checkout: its examples, test files and scripts, with the checkout's ``src`` in front.
"""

from __future__ import annotations

import argparse
import base64
import filecmp
import gzip
import os
import re
import shutil
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import polars as pl

BEFORE_REDESIGN = "1a8232284aad37f0ff495f26b5f2715e20218b4b"
ROOT = Path(__file__).resolve().parents[1]
DATA = Path(os.environ.get("RAGWORTH_DATA", "")).resolve()
NUMBER = re.compile(r"(?<![\w#.])[-+−]?\d[\d,]*(?:\.\d+)?(?:e[-+]?\d+)?(?![\w])")
DROPPED = re.compile(
    r"<(script|style|svg)\b.*?</\1>|\"seconds\": [\d.]+|(?<![\d.,])\d+(?:\.\d+)? (?:ms|s|seconds|minutes|min)\b"
    r"|\d{4}-\d\d-\d\d[T ][\d:.]+|\| (?:done|kept) \|[^\n]*|<td>(?:done|kept)</td>(?:(?!</tr>).)*|<[^>]*>",
    re.S,
)
PACKED = re.compile(r'<script type="text/plain"[^>]*>([\w+/=]+)</script>')
TRUST = ("--allow-server", "snapshot")

PLUGIN = """\
import random
from ragworth.llm.contract import Choose, Generate, Score
from ragworth.llm.scripted import Scripted

GENERATED = ("NOT IN CONTEXT", "Orla", "1820", "3", "5", "0", "YES", "NO", "[2] > [1] > [3]", "the lighthouse keeper")


def reply(request):
    text = chr(10).join(message.content for message in request.prompt.messages)
    draw = random.Random(text + getattr(request, "continuation", ""))
    if isinstance(request, Choose):
        weights = [draw.random() for label in request.labels]
        return {label: weight / sum(weights) / 1.01 for label, weight in zip(request.labels, weights)}
    return -draw.random() * 3 if isinstance(request, Score) else draw.choice(GENERATED)


def open_model(rest=""):
    return Scripted(reply, name="snapshot" + rest)
"""

SCRIPTED = """\
title = "Everything, scripted"
k = 3
limit = 16
model = "snapshot:"

[collection]
queries = "queries.jsonl"
passages = "passages.jsonl"
answers = "queries.jsonl"
subquestions = "subquestions.jsonl"
qrels = "qrels.txt"
ratings = "ratings.txt"

[systems]
bm25 = 'bm25(stopwords="english") % 5'
reversed = 'bm25(stopwords="english") % 5 >> reversed'
random = 'random % 5'
listwise = 'bm25 % 8 >> listwise(window=4, step=2) % 5'
useful = 'bm25 % 8 >> useful % 5'
fused = 'fused(bm25, random) % 5'

[judgments]
abstention = true
downstream = true
likelihood = true
confidence = true

[answers]
without = true
oracle = true

[grades]
deterministic = true
judge = true
ideal = true
text = true
coverage = true

[metrics]
baseline = "bm25"
"""
CRUX = """\
title = "CRUX-DUC: four runs"
k = 10

[collection]
from = "crux:{folder}"

[metrics]
use = ["Cov@10", "Cov(eta=4)@10", "alpha_nDCG@10"]
"""

STUDIES = {"alignment": ["--contexts", "4", "--k", "3"], "position": [], "propagation": ["--similarity", "f1"]}
LOGS = """\
deepeval/goldens.csv deepeval/goldens.json deepeval/goldens.jsonl deepeval/test_run.json haystack/answers.json
haystack/documents.json inspect_ai/log.json langchain/chain_results.json langchain/documents.jsonl
langfuse/observations.jsonl langfuse/traces.json llamaindex/nodes.json llamaindex/responses.json
open_rag_eval/answers.csv otlp/traces.json phoenix/spans.csv phoenix/spans.json phoenix/spans.parquet ragas/dataset.csv
ragas/dataset.jsonl ragas/result.csv ragas/result.parquet ragchecker/inputs.json ragchecker/results.json
""".split()  # noqa: SIM905
"""Files of tests/formats/files; the 25th log is RAGChecker's released answers, from the real data."""


class Snapshot:
    """Runs the commands of one checkout in a scratch folder and writes down what they computed."""

    def __init__(self, out: Path, checkout: Path) -> None:
        self.out, self.work = out, out / "work"
        plugin = self.work / "plugin"
        info = plugin / "snapshot_model-1.dist-info"
        write(plugin / "snapshot_model.py", PLUGIN)
        write(info / "METADATA", "Metadata-Version: 2.1\nName: snapshot-model\nVersion: 1\n")
        write(info / "entry_points.txt", "[ragworth.models]\nsnapshot = snapshot_model:open_model\n")
        paths = [str(plugin), str(checkout / "src"), os.environ.get("PYTHONPATH", "")]
        self.environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, paths)), "COLUMNS": "200"}

    def run(self, name: str, *arguments: str) -> None:
        """Run one command; what it prints goes under its name."""
        command = [sys.executable, "-m", "ragworth", *arguments]
        result = subprocess.run(
            command, cwd=self.work, env=self.environment, capture_output=True, text=True, check=False
        )
        print(f"{name}: exit code {result.returncode}", flush=True)
        self.write_text(f"{name}.txt", f"exit code {result.returncode}\n{result.stdout}")
        write(self.out / "texts" / f"{name}.stderr.txt", result.stderr)

    def write_text(self, name: str, text: str) -> None:
        """Keep a text in full, and its numbers, in their order, apart from it."""
        write(self.out / "texts" / name, text)
        numbers = [rounded(number) for number in NUMBER.findall(DROPPED.sub(" ", text))]
        write(self.out / "numbers" / name, "\n".join(numbers) + "\n")

    def keep_results(self, name: str, results: Path) -> None:
        """Every table and the numbers of every page under a results folder."""
        for path in sorted(path for path in results.rglob("*") if "/." not in str(path.relative_to(results.parent))):
            place = f"{name}/{path.relative_to(results)}"
            if path.suffix == ".parquet":
                write(self.out / "numbers" / f"{place}.csv", as_csv(path))
            elif path.suffix in (".csv", ".tsv"):
                write(self.out / "numbers" / place, path.read_text(encoding="utf-8"))
            elif path.suffix == ".html":
                self.write_text(place, unpacked(path.read_text(encoding="utf-8")))
            elif path.suffix in (".md", ".json") and path.name != "manifest.json":
                self.write_text(place, path.read_text(encoding="utf-8"))

    def keep_keys(self, name: str, workspace: Path) -> None:
        """Names of kept stages, which end with their keys, and the keys of all calls."""
        stages = sorted(path.parent.name for path in workspace.rglob("facts.json"))
        calls = [key for store in sorted(workspace.rglob("calls.sqlite")) for key in call_keys(store)]
        write(self.out / "numbers" / name / "stages.txt", "\n".join(stages) + "\n")
        write(self.out / "numbers" / name / "calls.txt", "\n".join(calls) + "\n")

    def evaluate(self, name: str, *options: str) -> None:
        """Evaluate the workspace of that name, and keep all that it gives."""
        self.run(f"{name}/evaluate", "evaluate", name, *options)
        self.run(f"{name}/as-json", "evaluate", name, "--json", *options)
        self.keep_results(f"{name}/results", self.work / name / "results")
        self.keep_keys(name, self.work / name)


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


def rounded(number: str) -> str:
    """Nine significant digits: sums in another order stay equal."""
    return f"{float(number.replace(',', '').replace('−', '-')):.9g}" if "." in number else number


def unpacked(page: str) -> str:
    """A page, and the data that its scripts show, which are compressed."""
    return PACKED.sub(lambda piece: gzip.decompress(base64.b64decode(piece[1])).decode(), page)


def as_csv(path: Path) -> str:
    frame = pl.read_parquet(path).with_columns(pl.selectors.float().round_sig_figs(9))
    lists = [column for column, kind in frame.schema.items() if kind.is_nested()]
    return frame.with_columns(pl.Series(column, list(map(str, frame[column]))) for column in lists).write_csv()


def call_keys(store: Path) -> Iterator[str]:
    with sqlite3.connect(store) as connection:
        tables = connection.execute("select name from sqlite_master where type = 'table' order by name").fetchall()
        for (table,) in tables:
            columns = [row[1] for row in connection.execute(f"pragma table_info({table})")]
            if "key" in columns:
                keys = connection.execute(f"select key from {table}").fetchall()
                yield from sorted(f"{table} {key.hex() if isinstance(key, bytes) else key}" for (key,) in keys)


def make_workspace(snapshot: Snapshot, name: str) -> Path:
    """A workspace that benchmarks/workspaces.py makes from real data, by this checkout's code for every checkout."""
    folder = snapshot.work / name
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
    subprocess.run([sys.executable, ROOT / "benchmarks" / "workspaces.py", name, folder], check=True, env=environment)
    return folder


def copy_demo(folder: Path) -> Path:
    return Path(shutil.copytree(ROOT / "examples" / "demo", folder, ignore=lambda *_: {"results", ".ragworth"}))


def demo(snapshot: Snapshot) -> None:
    copy_demo(snapshot.work / "demo")
    snapshot.evaluate("demo", "--limit", "12")


def scripted(snapshot: Snapshot) -> None:
    folder = copy_demo(snapshot.work / "scripted")
    (folder / "ragworth.toml").write_text(SCRIPTED)
    snapshot.run("scripted/check", "check", "scripted", *TRUST)
    snapshot.run("scripted/plan", "evaluate", "scripted", "--dry-run", *TRUST)
    snapshot.evaluate("scripted", *TRUST)
    steps(snapshot)
    (folder / "ragworth.toml").write_text(SCRIPTED.replace("ideal = true\n", ""))  # studies make no oracle's answers
    for study, options in STUDIES.items():
        output = ["-o", f"studies/{study}"]
        snapshot.run(f"studies/plan-{study}", "study", study, "scripted", "--dry-run", *TRUST, *options)
        snapshot.run(f"studies/{study}", "study", study, "scripted", *TRUST, *options, *output)
    snapshot.keep_results("studies", snapshot.work / "studies")
    snapshot.keep_keys("studies", folder)


def steps(snapshot: Snapshot) -> None:
    """The single-step commands on the tables of the scripted evaluation, and a study of files."""
    inputs = [f"--{text}=scripted/{text}.jsonl" for text in ("queries", "passages", "subquestions")]
    inputs.append("--answers=scripted/queries.jsonl")
    model = ["--model", "snapshot:", "--store", "steps.sqlite"]
    contexts = "scripted/results/contexts.parquet"
    (snapshot.work / "steps").mkdir()
    for kind in ("abstention", "relevance", "downstream", "likelihood", "confidence", "ratings"):
        output = ["--depth", "2", "-o", f"steps/{kind}.parquet"]
        snapshot.run(f"steps/annotate-{kind}", "annotate", kind, contexts, *inputs, *model, *output)
    snapshot.run("steps/answer", "answer", contexts, *inputs, *model, "--depth", "2", "-o", "steps/answers.parquet")
    for grader in ("deterministic", "judge", "text", "coverage"):
        asked = model if grader in ("judge", "coverage") else []
        output = ["-q", "scripted/qrels.txt", "-o", f"steps/{grader}.parquet"]
        snapshot.run(f"steps/grade-{grader}", "grade", grader, "steps/answers.parquet", *inputs, *asked, *output)
    labels = ["-q", "scripted/qrels.txt", "-j", "steps/abstention.parquet", "--ratings", "scripted/ratings.txt"]
    metrics = ["UDCG", "nDCG", "AP", "P", "R", "RR", "F", "F_e", "T", "T_u", "Cov", "alpha_nDCG"]
    score_and_compare(snapshot, "steps", [*labels, contexts], [*(f"{metric}@3" for metric in metrics), "Bpref"])
    tables = ["steps/deterministic.parquet", "steps/judge.parquet"]
    snapshot.run("steps/judges", "study", "judges", *tables, "-o", "steps/judges")
    snapshot.keep_results("steps", snapshot.work / "steps")


def score_and_compare(snapshot: Snapshot, name: str, inputs: list[str], metrics: list[str]) -> None:
    """Scores, intervals, p-values of two tests, and gates, in full precision and as printed."""
    named = [part for metric in metrics for part in ("-m", metric)]
    gates = [part for metric in metrics[:2] for part in ("--fail-if-worse", metric)]
    for form in ("text", "json"):
        snapshot.run(f"{name}/score-{form}", "score", "-f", form, *named, *inputs)
        snapshot.run(f"{name}/compare-{form}", "compare", "-f", form, *named, *gates, *inputs)
    snapshot.run(f"{name}/per-query", "score", "-f", "json", "--per-query", *named, *inputs)
    snapshot.run(f"{name}/correlate", "score", "-f", "json", "--correlate", "queries", *named, *inputs)
    for test in ("t", "wilcoxon", "sign", "bootstrap"):
        snapshot.run(f"{name}/compare-{test}", "compare", "-f", "json", "--test", test, *named[:4], *inputs)


def vaswani(snapshot: Snapshot) -> None:
    folder = make_workspace(snapshot, "vaswani")
    snapshot.evaluate("vaswani")
    inputs = ["-q", str(folder / "qrels.txt"), "vaswani/results/contexts.parquet"]
    score_and_compare(snapshot, "vaswani", inputs, ["nDCG@10", "AP@100", "P@10", "R@100", "RR@10", "Bpref"])


def dl19(snapshot: Snapshot) -> None:
    (file,) = (DATA / "trecdl19_exam").glob("DL19-*.jsonl.gz")
    metrics = ["nDCG@10", "Cov(eta=4)@10", "AP(rel=2)@20", "P(rel=2)@10", "RR(rel=2)@10", "alpha_nDCG(eta=4)@20"]
    score_and_compare(snapshot, "dl19", ["--collection", f"exam:{file}"], metrics)


def real(name: str, *options: str) -> Callable[[Snapshot], None]:
    """Evaluate a workspace of real data."""

    def part(snapshot: Snapshot) -> None:
        make_workspace(snapshot, name)
        snapshot.evaluate(name, *options)

    return part


def crux(snapshot: Snapshot) -> None:
    folder = snapshot.work / "crux"
    write(folder / "ragworth.toml", CRUX.format(folder=DATA / "crux_duc04"))
    snapshot.evaluate("crux")


def logs(snapshot: Snapshot) -> None:
    """Evaluate each log by the answers and grades in it."""
    files = [ROOT / "tests" / "formats" / "files" / name for name in LOGS]
    for path in (*files, DATA / "ragchecker_meta" / "baseline_ragchecker.json.gz"):
        name = f"logs/{path.parent.name}-{path.name}"
        folder = snapshot.work / name
        folder.mkdir(parents=True)
        shutil.copy(path, folder)  # results and the cache go beside the file
        snapshot.run(f"{name}/evaluate", "evaluate", f"{name}/{path.name}", "--model", "none")
        snapshot.keep_results(name, folder)


PARTS: dict[str, Callable[[Snapshot], None]] = {
    "scripted": scripted, "demo": demo, "vaswani": vaswani, "dl19": dl19, "logs": logs, "crux": crux,
    "rgb": real("rgb", "--limit", "10"), "aragog": real("aragog"),
}  # fmt: skip


def make(out: Path, checkout: Path, only: list[str]) -> None:
    """Run the parts, two at a time."""
    snapshot = Snapshot(out.resolve(), checkout.resolve())
    with ThreadPoolExecutor(2) as pool:
        for done in [pool.submit(PARTS[name], snapshot) for name in only]:
            done.result()


@contextmanager
def checked_out(name: str) -> Iterator[Path]:
    """A folder, or a temporary worktree of a commit."""
    if Path(name).is_dir():
        yield Path(name)
        return
    with tempfile.TemporaryDirectory() as folder:
        git, commit = ["git", "-C", str(ROOT), "worktree"], BEFORE_REDESIGN if name == "BEFORE_REDESIGN" else name
        subprocess.run([*git, "add", "--quiet", "--detach", folder, commit], check=True)
        try:
            yield Path(folder)
        finally:
            subprocess.run([*git, "remove", "--force", folder], check=True)


def differences(old: Path, new: Path, shown: int = 6) -> Iterator[str]:
    """For each file that differs: how many lines do, and the first few."""
    names = sorted({path.relative_to(side) for side in (old, new) for path in side.rglob("*") if path.is_file()})
    for name in names:
        if not (old / name).exists() or not (new / name).exists():
            yield f"{name}: only in {old if (old / name).exists() else new}"
        elif not filecmp.cmp(old / name, new / name, shallow=False):
            command = ["diff", "--text", str(old / name), str(new / name)]
            output = subprocess.run(command, capture_output=True, text=True, check=False).stdout
            lines = [line for line in output.splitlines() if line[:1] in "<>"]
            yield "\n".join([f"{name}: {len(lines)} lines differ", *(f"  {line[:160]}" for line in lines[:shown])])


def snapshot_of(place: str, only: list[str], out: Path) -> Path:
    """The numbers of an earlier OUT, or those of a checkout or commit, computed into a new folder."""
    if (Path(place) / "numbers").is_dir():
        return Path(place) / "numbers"
    with checked_out(place) as checkout:
        make(out, checkout, only)
    return out / "numbers"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path, nargs="?", help="a new folder, or with --compare an earlier one")
    parser.add_argument("--checkout", default=str(ROOT), help="folder or commit whose code is run; default: this one")
    parser.add_argument("--compare", metavar="OLD", help="an earlier OUT, or a commit")
    parser.add_argument("--only", action="append", choices=PARTS, help="a part; repeat for more")
    options = parser.parse_args()
    if not options.compare and (not options.out or options.out.exists()):
        parser.error("name a new folder OUT, or what to --compare")
    only = options.only or list(PARTS)
    with tempfile.TemporaryDirectory() as folder:
        earlier = options.out and (options.out / "numbers").is_dir()
        place = str(options.out) if earlier else options.checkout
        new = snapshot_of(place, only, options.out or Path(folder) / "new")
        if options.compare:
            found = list(differences(snapshot_of(options.compare, only, Path(folder) / "old"), new))
            print("\n".join(found) or "no difference")
            sys.exit(1 if found else 0)


if __name__ == "__main__":
    main()
