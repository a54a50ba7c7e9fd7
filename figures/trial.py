"""Run a command with a stand-in for the embedded model, which needs no weights: what ``--quick`` does.

    python -m figures.trial ragworth evaluate examples/demo
    python -m figures.trial python benchmarks/judgments.py --questions 3

Its answers depend on the prompt alone and mean nothing; they are there so that every table has its cells.
"""

from __future__ import annotations

import hashlib
import runpy
import sys
from pathlib import Path

from ragworth.llm import MODELS
from ragworth.llm.contract import Choose, Generate, Request
from ragworth.llm.scripted import Scripted, ScriptedReply


def said(request: Request) -> ScriptedReply:
    """Some probability or text, the same for the same request."""
    share = hashlib.sha256(repr(request.prompt).encode()).digest()[0] / 256
    if isinstance(request, Choose):
        first, *rest = request.labels
        return {first: 0.1 + 0.7 * share} | {label: 0.1 / len(rest) for label in rest}
    if not isinstance(request, Generate):
        return -share
    if "[2]" in repr(request.prompt):  # passages to put in order
        return "[2] > [1]"
    return "NO-RESPONSE" if share < 0.4 else "18:40"


def stand_in(rest: str, **options: object) -> Scripted:
    return Scripted(said, name=f"stand-in-{rest}")


def main() -> None:
    program, *arguments = sys.argv[1:]
    MODELS._loaded["embedded"] = stand_in
    if program == "ragworth":
        sys.argv = ["ragworth", *arguments]
        runpy.run_module("ragworth", run_name="__main__")
    elif arguments[0] == "-m":
        sys.argv = arguments[1:]
        runpy.run_module(arguments[1], run_name="__main__", alter_sys=True)
    else:
        sys.argv = arguments
        sys.path.insert(0, str(Path(arguments[0]).resolve().parent))
        runpy.run_path(arguments[0], run_name="__main__")


if __name__ == "__main__":
    main()
