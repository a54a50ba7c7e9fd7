"""``run``: results of another program, from its file."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from ragworth.core.errors import InputError, format_count
from ragworth.data import Contexts
from ragworth.formats import Spec, read_contexts
from ragworth.retrieval.contract import Place, Step, StepContext, argument


@dataclass(frozen=True)
class Run(Step):
    """A run in any format of contexts: a TREC file, a table, JSON lines.

    It is read in full depth unless a cut follows. Queries that weren't requested are left out.
    """

    path: str = argument("", "file of one system, or FORMAT:FILE")

    kind: ClassVar[str] = "run"
    title: ClassVar[str] = "results of another program, from its file"
    place: ClassVar[Place] = "first"
    bounded: ClassVar[bool] = False

    def check(self) -> None:
        if not self.path:
            raise InputError("run lacks a file", expected='a path, such as run("runs/dense.txt")')

    def problems(self, context: StepContext) -> list[str]:
        (path,) = self.files(context) or (None,)
        return [f"run: there is no file {path}"] if path is not None and not path.exists() else []

    def files(self, context: StepContext) -> tuple[Path, ...]:
        spec = Spec.of(self.path)
        return () if spec.format == "ir_datasets" else ((context.folder or Path()) / spec.path,)

    def apply(self, before: Contexts | None, context: StepContext) -> Contexts:
        spec, where = Spec.of(self.path), self.files(context)
        path = where[0] if where else spec.path
        read = read_contexts(f"{spec.format}:{path}" if spec.format else path)
        if len(read.systems) > 1:
            raise InputError(
                f"the file has {format_count(len(read.systems), 'system')}",
                expected="one system",
                remedy="write a file for each, or read it and pass contexts.only(NAME) as a system",
                file=self.path,
            )
        return read
