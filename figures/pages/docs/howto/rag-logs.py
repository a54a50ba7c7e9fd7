"""docs/howto/rag-logs.md: files that the tools themselves wrote, each evaluated with one command."""

import shutil
import time
from pathlib import Path

from figures.declare import CLOCK, MODEL, Shown, figure
from figures.running import ROOT, Run
from figures.tables import table

FILES = {
    "ragas": ("ragas/dataset.jsonl", "ragas/result.csv"),
    "deepeval": ("deepeval/test_run.json", "deepeval/goldens.csv"),
    "RAGChecker": ("ragchecker/inputs.json", "ragchecker/results.json"),
    "open-rag-eval": ("open_rag_eval/answers.csv",),
    "LangChain": ("langchain/chain_results.json",),
    "LlamaIndex": ("llamaindex/responses.json",),
    "Haystack": ("haystack/answers.json",),
    "inspect_ai": ("inspect_ai/log.json",),
    "OpenTelemetry": ("otlp/traces.json",),
    "Phoenix": ("phoenix/spans.parquet",),
    "Langfuse": ("langfuse/traces.json",),
}


def verdict(output: str) -> str:
    """The first sentence: of the answers, which is above their table, or of the passages, which is below theirs."""
    first, *below = output.split("\n\n")
    sentence = (below[0] if first.startswith("system ") else first).partition("\n")[0]
    return sentence.partition(";")[0].rstrip(".")


@figure("ragworth evaluate FILE, for each file in tests/formats/files", seconds=240, needs=(CLOCK, MODEL))
def verdicts(run: Run) -> Shown:
    rows = []
    for tool, names in FILES.items():
        for name in names:
            folder = run.work / "logs" / name.replace("/", "-")
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir(parents=True)
            path = Path(shutil.copy(ROOT / "tests" / "formats" / "files" / name, folder))
            run.forget(folder)
            begun = time.perf_counter()
            said = verdict(run.output(f"ragworth evaluate {path} --quiet"))
            rows.append((tool, f"`ragworth evaluate {path.name}`", said, f"{time.perf_counter() - begun:.0f} s"))
    yield "", str(table(("from", "command", "what it says first", "time"), rows, "lllr"))
