"""Train, and be killed at one step after another: ``python -m tests.rewriting.killed_training OUTPUT BASE PLACE…``.

A place is ``STAGE STEP whole`` or ``STAGE STEP broken``. Each training runs in a fork of this process, so that PyTorch
and TRL are imported once. Prints how each ended: -9 is a kill.
"""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path
from typing import Any

from transformers import TrainerCallback

import ragworth.rewriting.training.trainers  # noqa: F401 -- imports TRL before the forks
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


def train_in_a_fork(output: Path, base: Path, place: str) -> int:
    """Exit code of a training that is killed at a place."""
    if not (child := os.fork()):
        stage, step, broken = place.split()
        training_run(output, base, callbacks=[KillAt(stage, int(step), broken == "broken")]).train()
        os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


if __name__ == "__main__":
    output, base, *places = sys.argv[1:]
    for place in places:
        sys.stdout.write(f"{train_in_a_fork(Path(output), Path(base), place)}\n")
