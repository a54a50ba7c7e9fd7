"""Trainings that are killed at a step: ``python -m tests.rewriting.killed_training BASE "OUTPUT STAGE STEP KIND" …``.

Prints how each of them ended. The packages are imported once; each training runs in a fork.
"""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path
from typing import Any

from transformers import TrainerCallback

from ragworth.rewriting.training import trainers  # noqa: F401 (imports TRL before the forks)
from tests.rewriting.conversation_samples import training_run


class KillAt(TrainerCallback):  # type: ignore[misc]
    """Ends the process without warning: in a stage, at a step, after its checkpoint was begun."""

    def __init__(self, stage: str, step: int, broken: bool) -> None:
        self.stage, self.step, self.broken = stage, step, broken

    def on_step_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        if self.stage in args.output_dir and state.global_step == self.step:
            if self.broken:  # as if the kill came while a checkpoint was written
                unfinished = Path(args.output_dir) / f"checkpoint-{self.step}"
                unfinished.mkdir(exist_ok=True)
                (unfinished / "trainer_state.json").write_text('{"global_')
            os.kill(os.getpid(), signal.SIGKILL)


def train_in_fork(output: str, base: str, stage: str, step: str, kind: str) -> int:
    """How the training ended: minus the signal, or its exit code."""
    child = os.fork()
    if not child:
        training_run(Path(output), Path(base), callbacks=[KillAt(stage, int(step), kind == "broken")]).train()
        os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


if __name__ == "__main__":
    base, *places = sys.argv[1:]
    for place in places:
        output, *where = place.rsplit(" ", 3)
        sys.stdout.write(f"{train_in_fork(output, base, *where)}\n")
