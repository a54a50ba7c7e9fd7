"""Train in a process that is killed at a step: ``python -m tests.rewriting.killed_training OUTPUT BASE PLACE``."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path
from typing import Any

from transformers import TrainerCallback

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


if __name__ == "__main__":
    output, base, stage, step, broken = sys.argv[1:]
    training_run(Path(output), Path(base), callbacks=[KillAt(stage, int(step), broken == "broken")]).train()
