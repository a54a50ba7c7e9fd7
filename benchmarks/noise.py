"""False alarms: how often chance makes a metric "predict" the answers, and whether a planted relation is found.

    python benchmarks/noise.py                  # 40 workspaces of noise and 20 with a relation; about ten minutes
    python benchmarks/noise.py --noise 8 --planted 4

Every workspace has questions, labels, accepted answers and four systems, and goes through `ragworth evaluate`,
`ragworth study alignment`, and the same with `--protocol paper`. Where there is only noise, the reader knows the
answers or not, but never looks at the passages; its judgments of passages are random, too. Any metric that is said to
predict is a false alarm. The planted reader believes the passage that speaks loudest (`simulated_reader.py`). Nothing
is asked of a real model.
"""

from __future__ import annotations

import argparse
import random
import re
import sys
import tempfile
from concurrent.futures import ProcessPoolExecutor
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import NamedTuple
from unittest.mock import patch

if sys.path[0] == str(Path(__file__).resolve().parent):
    # Run as a script: our coverage.py must not stand for the package of that name.
    sys.path[0] = str(Path(__file__).resolve().parents[1])

from benchmarks.simulated_reader import Reader, collection, model

import ragworth
from ragworth.llm.contract import Choose, Generate, Request, Score, Trace
from ragworth.llm.scripted import ScriptedReply
from ragworth.stats.range_intervals import wilson_interval

SYSTEMS = """
second = ['run("run.txt") % 20', "reversed"]
third = ['run("run.txt") % 20', "shuffled"]
fourth = "random % 20"
"""
QUESTION = re.compile(r"the word of q0*(\d+)")
SIZES = (30, 60, 150)
"""Questions of a workspace, in turn."""
NONE = "No metric reliably predicts"


class Ignoring(Reader):
    """Knows an answer, abstains or errs by chance, more often right for easy questions; passages make no difference."""

    def __call__(self, request: Request) -> ScriptedReply:
        last = request.prompt.messages[-1].content
        draw, asked = random.Random(f"{self.name} {last}"), QUESTION.search(last)
        if isinstance(request, Choose):
            return {request.labels[0]: draw.uniform(0.01, 0.99)}
        if isinstance(request, Score):
            words = tuple(request.continuation.split(" "))
            return Trace(words, (draw.uniform(-3.0, -0.1),) * len(words), (1.5,) * len(words))
        if not isinstance(request, Generate) or asked is None:
            return super().__call__(request)
        easy = random.Random(f"{self.name} {asked[1]}").random()
        said = draw.random()
        return f"right{asked[1]}" if said < easy else "NO-RESPONSE" if said < (1 + easy) / 2 else "wrong0"


class Verdict(NamedTuple):
    """What the report and the study say of metrics that predict; empty if they say that none does."""

    evaluate: str
    alignment: str
    paper: str


class World(NamedTuple):
    """A workspace and its reader."""

    place: Path
    reader: Reader

    @classmethod
    def build(cls, folder: Path, seed: int, *, planted: bool, queries: int) -> World:
        name = f"{'planted' if planted else 'noise'}{seed}"
        place = collection(folder / name, queries=queries, seed=seed)
        written = place / "ragworth.toml"
        text = written.read_text(encoding="utf-8").replace("[judgments]", f"{SYSTEMS.lstrip()}[judgments]")
        written.write_text(text, encoding="utf-8")
        return cls(place, Reader(noise=0.1, name=name) if planted else Ignoring(name=name))

    def evaluate(self) -> str:
        """What the report says; empty if no metric predicts the grade."""
        with patch("ragworth.evaluation.model_pool.llm", model(self.reader)):
            ragworth.evaluate(self.place)
        return of_report(self.place / "results" / "report.md")

    def study(self, protocol: str = "ours") -> str:
        """What the study says; empty if no metric predicts the grade."""
        with patch("ragworth.evaluation.model_pool.llm", model(self.reader)):
            found = ragworth.study("alignment", self.place, keep=False, protocol=protocol)
        return of_study(found.findings.sentences[0])


def of_report(page: Path) -> str:
    """The report's sentence on the metric that predicts the grade."""
    text = page.read_text(encoding="utf-8")
    found = re.search(r"\S+( and \S+)? predicts? grade best.*", text)
    if found is None and f"{NONE} grade" not in text:
        raise SystemExit(f"{page} says nothing of metrics that predict the grade")
    return found.group() if found else ""


def of_study(said: str) -> str:
    """The study's first sentence, unless it says that nothing predicts the outcome."""
    nothing = said.startswith((NONE, "No metric has a correlation")) and " predicts it, " not in said
    return "" if nothing else said


def run(seed: int, *, planted: bool) -> Verdict:
    """Evaluate and study one workspace, without drawing charts."""
    drawn = {
        "vl_convert.vegalite_to_svg": "<svg xmlns='http://www.w3.org/2000/svg'/>",
        "vl_convert.vegalite_to_png": b"",
    }
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        for name, image in drawn.items():
            stack.enter_context(patch(name, return_value=image))
        world = World.build(Path(folder), seed, planted=planted, queries=SIZES[seed % len(SIZES)])
        return Verdict(world.evaluate(), world.study(), world.study("paper"))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--noise", type=int, default=40, help="workspaces without any relation")
    parser.add_argument("--planted", type=int, default=20, help="workspaces with one")
    parser.add_argument("--processes", type=int, default=2)
    options = parser.parse_args()
    columns = ("workspaces", "", "`evaluate`", "`study alignment`", "the same with `--protocol paper`")
    print("| " + " | ".join(columns) + " |\n| --- | --- | ---: | ---: | ---: |")
    with ProcessPoolExecutor(options.processes) as pool:
        for planted, number in ((False, options.noise), (True, options.planted)):
            found = list(pool.map(partial(run, planted=planted), range(number)))
            words = ("a planted relation", "found") if planted else ("noise alone", "false alarms")
            cells = [share(sum(map(bool, each)), number) for each in zip(*found, strict=True)]
            print("| " + " | ".join((*words, *cells)) + " |", flush=True)
            for seed, each in enumerate(found):
                if not planted and any(each):
                    print(f"noise{seed}: {each}", file=sys.stderr)


def share(part: int, whole: int) -> str:
    low, high = wilson_interval(part, whole, 0.95)
    return f"{part} of {whole} [{low:.2f}, {high:.2f}]"


if __name__ == "__main__":
    main()
