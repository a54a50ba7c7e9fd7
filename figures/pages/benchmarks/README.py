"""benchmarks/README.md: times and memory; every claim is a ratio measured in one run, on an idle machine."""

import re

from figures.declare import BROWSER, CLOCK, GPU, MODEL, PEERS, Picture, Shown, figure
from figures.running import Run
from figures.tables import Table, table

BEFORE = {
    ("10,000", "`check`"): ("3.0", "245"),
    ("10,000", "`score`"): ("5.2", "278"),
    ("10,000", "`compare`"): ("33.9", "298"),
    ("10,000", "`evaluate`"): ("53.4", "643"),
    ("100,000", "`check`"): ("17.7", "1,011"),
    ("100,000", "`score`"): ("42.2", "1,282"),
    ("100,000", "`compare`"): ("322.6", "1,297"),
    ("100,000", "`evaluate`"): ("166", "1,110"),
}
"""CPU seconds and megabytes of the version before, which can't be measured any more."""
RUNTIMES = {
    "torch float32, one prompt a call": "torch float32, one prompt a call",
    "torch float32": "torch float32",
    "torch bfloat16": "torch bfloat16",
    "torch int8 dynamic": "torch int8 dynamic",
    "openvino int8 weights, int8 vectors": "OpenVINO, int8 weights and vectors",
    "openvino int8 weights, bfloat16": "OpenVINO, int8 weights, bfloat16",
    "llama.cpp (xllamacpp), Q4_1": "llama.cpp server, Q4_1 (20 prompts)",
    "onnx float32": "ONNX Runtime, float32",
    "onnx MatMulNBits 8": "ONNX Runtime, MatMulNBits 8",
    "onnx int8 (ours)": "**ONNX Runtime, int8 (ours)**",
    "onnx int8 (ours), shared prefix": "**the same, shared prefix read once**",
}
GPU_WAYS = {
    "one prompt a call, first 64": "one prompt a call, the first 64",
    "one prompt a call, the same again": "one prompt a call, the same 64 again",
    "sorted batches of 64": "sorted batches of 64",
    "sorted batches of 256": "sorted batches of 256",
    "ragworth, bfloat16": "ragworth, `share_prefix=false`",
    "ragworth, bfloat16, prefix shared": "ragworth",
    "ragworth, bfloat16, compiled": "ragworth, `share_prefix=false`, `compile=true`",
    "ragworth, bfloat16, prefix shared, compiled": "ragworth, `compile=true`",
    "ragworth, float8, compiled": "ragworth, `dtype=float8`, `share_prefix=false`, `compile=true`",
    "ragworth, float8, prefix shared, compiled": "ragworth, `dtype=float8`, `compile=true`",
}


@figure("python benchmarks/scoring.py", seconds=300, needs=(CLOCK, PEERS))
def scoring(run: Run) -> Shown:
    found = run.table(f"python benchmarks/scoring.py {run.pick('', '--queries 20 --repeats 1')}")
    shown = found.only("tool", "seconds", "× ragworth from text", "peak MB", "largest deviation of a mean")
    yield "", str(shown.where(lambda row: "command" not in row["tool"]))


@figure("python benchmarks/scoring.py --growth", seconds=120, needs=CLOCK)
def growth(run: Run) -> Shown:
    made = run.work / "growth.png"
    some = run.pick("", "--sizes 2 3 4 5 6 --repeats 1")
    yield "table", str(run.table(f"python benchmarks/scoring.py --growth --picture {made} {some}"))
    yield "picture", Picture("Time and memory against rows", "growth.png", made)


@figure("python benchmarks/models.py --prompts 32", seconds=200, needs=(CLOCK, MODEL))
def models(run: Run) -> Shown:
    command = f"python benchmarks/models.py --prompts {run.pick('32', '2')}"
    yield "table", str(run.table(command).aligned("lrr"))
    ((plain, ours),) = re.findall(r"loading: transformers ([\d.]+) s, embedded ([\d.]+) s", run.output(command))
    yield "plain-loading", plain
    yield "loading", ours


@figure("python benchmarks/label_site.py --results load.jsonl", seconds=1800, needs=CLOCK)
def label_load(run: Run) -> Shown:
    some = run.pick("", "--items 10 --people 4 --kills 1 --pause 0.1 --databases sqlite")
    yield "", str(run.table(f"python benchmarks/label_site.py --results {run.work}/label-load.jsonl {some}"))


@figure("python benchmarks/label_scale.py 10000 100000", seconds=120, needs=CLOCK)
def label_scale(run: Run) -> Shown:
    yield "", str(run.table(f"python benchmarks/label_scale.py {run.pick('10000 100000', '300 600')}"))


@figure("python benchmarks/models.py --gpu", seconds=300, needs=(CLOCK, GPU))
def gpu(run: Run) -> Shown:
    _, found = run.tables(f"python benchmarks/models.py --gpu {run.pick('', '--prompts 128')}")
    rows = [(GPU_WAYS[way], rate, times, share.replace("%", " %")) for way, rate, times, share in found.rows]
    yield "", str(table(("way", "prompts/s", "times the plain way", "share"), rows, "lrrr"))


@figure("python benchmarks/runtimes.py", seconds=1800, needs=(CLOCK, MODEL, PEERS))
def runtimes(run: Run) -> Shown:
    found = run.table(f"python benchmarks/runtimes.py {run.pick('', '--prompts 4 --rounds 1')}")
    rows = []
    for way, size, wall, spent, times, _, *apart in found.rows:
        if way in RUNTIMES and size == largest(found, way):
            moved, most, less, least, same = (short(value) for value in apart)
            rows.append((RUNTIMES[way], size, wall, spent, times, f"{moved} / {most}", f"{less} / {least}", same))
    head = (
        "way",
        "prompts at a time",
        "s a prompt",
        "CPU s",
        "times plain",
        "TV mean / max",
        "Δ log p mean / max",
        "same likeliest",
    )
    yield "", str(table(head, rows, "lrrrrrrr"))


def largest(found: Table, way: str) -> str:
    """The most prompts at a time that a way was measured with, up to 16."""
    return str(max(int(row[1]) for row in found.rows if row[0] == way and int(row[1]) <= 16))


def short(value: str) -> str:
    """0.0331 as .033"""
    return value if value == "–" else f"{float(value):.3f}".removeprefix("0")


@figure("python benchmarks/agreement.py --prompts 200", seconds=1200, needs=(MODEL, PEERS))
def agreement(run: Run) -> Shown:
    found = run.table(f"python benchmarks/agreement.py --prompts {run.pick('200', '3')}")
    rows = [(way, tokens, *(rounded(cell) for cell in cells)) for way, tokens, *cells in found.rows]
    yield "", str(table(found.head, rows, "llrrrrrr"))


def rounded(cell: str) -> str:
    return "0" if float(cell) == 0 else f"{float(cell):.3f}"


@figure("python benchmarks/calls.py", seconds=120, needs=CLOCK)
def calls(run: Run) -> Shown:
    found = run.table(f"python benchmarks/calls.py {run.pick('', '--calls 2000 --times 1')}")
    yield "", str(table(found.head, [(a, b, c.replace("%", " %")) for a, b, c in found.rows], "lrr"))


@figure("python benchmarks/endpoint.py --calls 300 --times 7", seconds=120, needs=CLOCK)
def endpoint(run: Run) -> Shown:
    yield (
        "",
        str(run.table(f"python benchmarks/endpoint.py {run.pick('--calls 300 --times 7', '--calls 60 --times 1')}")),
    )


@figure("python benchmarks/report.py", seconds=120, needs=(CLOCK, BROWSER))
def report(run: Run) -> Shown:
    said = run.output("python benchmarks/report.py")
    ((seconds, size),) = re.findall(r"written in ([\d.]+) s, ([\d.]+) MB", said)
    opened, query = re.findall(r"opened in (\d+) ms \(from (\d+) to (\d+)\)", said)
    rows = [
        ("size of `report.html`", f"{size} MB"),
        ("written, figures and Markdown included", f"{float(seconds):.0f} s"),
        ("opened, until the list of queries is there", within(opened)),
        ("a query opened, three contexts side by side", within(query)),
    ]
    yield "", str(table(("", ""), rows, "lr"))


def within(times: tuple[str, str, str]) -> str:
    middle, least, most = (f"{int(each) / 1000:.2f}" for each in times)
    return f"{middle} s ({least} to {most})"


@figure("python benchmarks/load.py 10000 100000 1000000", seconds=1200, needs=CLOCK)
def load(run: Run) -> Shown:
    found = run.tables(f"python benchmarks/load.py {run.pick('10000 100000 1000000', '50')} --folder {{work}}/load")
    rows = []
    for queries, command, cpu, _, peak in (row for part in found for row in part.rows):
        old_cpu, old_peak = BEFORE.get((queries, command), ("–", "–"))
        rows.append((queries, command, old_cpu, cpu, old_peak, peak))
    yield "", str(table(("queries", "command", "CPU s before", "now", "peak MB before", "now"), rows, "rlrrrr"))


@figure("python benchmarks/first_verdict.py", seconds=200, needs=(CLOCK, MODEL))
def verdict(run: Run) -> Shown:
    yield "", str(run.table(f"python benchmarks/first_verdict.py --questions {run.pick('30', '2')}"))


@figure("python benchmarks/retrieval.py", seconds=400, needs=(CLOCK, PEERS))
def retrieval(run: Run) -> Shown:
    yield "", str(run.table(f"python benchmarks/retrieval.py {run.pick('', '--sizes 300 400 500 --queries 5')}"))


@figure("python benchmarks/studies.py", seconds=30, needs=CLOCK)
def studies(run: Run) -> Shown:
    few, many = re.findall(r"resamples: ([\d.]+) s", run.output("python benchmarks/studies.py"))
    yield "few", few
    yield "many", many
