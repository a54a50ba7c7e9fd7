"""A dry run of many calls: CPU seconds and peak memory of ``ragworth evaluate . --dry-run``.

    python benchmarks/dry_run.py 100000 1000000

Two systems show ten passages for each query, 16 different ones, and the scripted model would be asked for the
abstention probability of each. Nothing is asked: the command reads all files, renders all prompts, looks for every
call in the store, which is empty, and prints the number of calls and tokens.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from benchmarks.load import DATA, TOML, make, measure

PASSAGES_PER_QUERY = 16
MODEL = '[model]\nuse = "scripted:script.json"\n\n[judgments]\nabstention = true\n'


def make_workspace(folder: Path, calls: int) -> None:
    """The workspace of `benchmarks/load.py`, with a model to ask instead of given judgments."""
    make(folder, calls // PASSAGES_PER_QUERY)
    (folder / "ragworth.toml").write_text(TOML.partition("[judgments]")[0] + MODEL, encoding="utf-8")
    (folder / "script.json").write_text(json.dumps({"*": {"NO-RESPONSE": 0.25, "Yes": 0.5}}))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("calls", type=int, nargs="*", default=[100_000])
    parser.add_argument("--folder", type=Path, default=DATA.with_name("dry_run"), help="where workspaces are made")
    given = parser.parse_args()
    print("| requests | CPU s | s | peak MiB |\n| ---: | ---: | ---: | ---: |", flush=True)
    for calls in given.calls:
        folder = given.folder / str(calls)
        make_workspace(folder, calls)
        cost = measure(["evaluate", ".", "--dry-run"], folder)
        if cost["code"]:
            sys.exit("the dry run failed:\n" + (folder / "out.txt").read_text()[-2000:])
        print(f"| {calls:,} | {cost['cpu']:.1f} | {cost['seconds']:.1f} | {cost['peak_mb']:,.0f} |", flush=True)


if __name__ == "__main__":
    main()
