"""TRL's trainers over examples that are tokens already, and the callback that keeps the best epoch."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

from peft import load_peft_weights, set_peft_model_state_dict
from transformers import TrainerCallback
from trl import DPOTrainer, SFTTrainer

from ragworth.rewriting.training.kept_adapter import ADAPTER, EPOCH, read_best, write_json


class SupervisedTrainer(SFTTrainer):
    """SFT on ``input_ids`` and ``labels``, which TRL takes as they are."""


class PreferenceTrainer(DPOTrainer):
    """DPO on ``prompt_ids``, ``chosen_ids`` and ``rejected_ids``; the reference is a copy of the first adapter."""

    def _prepare_dataset(self, dataset: Any, *args: Any, **kwargs: Any) -> Any:
        """TRL would apply the tokenizer's own chat template, whose tokens may differ from those of the engine."""
        return dataset

    def _load_from_checkpoint(self, resume_from_checkpoint: str, model: Any = None) -> None:
        """Load the adapter that is trained; the reference is where the stage starts, so it is there already.

        The library loads only the adapters in subfolders if there are any, which is the reference: training would go
        on with the adapter that the stage started from.
        """
        weights = load_peft_weights(resume_from_checkpoint, device="cpu")
        set_peft_model_state_dict(self.model if model is None else model, weights, adapter_name=ADAPTER)


class KeepBestEpoch(TrainerCallback):
    """Keeps the adapter of the epoch with the smallest held-out loss; without one, that of the last epoch.

    A checkpoint at the end of an epoch is written after its adapter was kept: otherwise training that is killed in
    between would go on without it.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def on_step_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        if state.global_step * args.num_train_epochs % state.max_steps == 0:
            control.should_save = False

    def on_epoch_end(self, args: Any, state: Any, control: Any, model: Any = None, **kwargs: Any) -> None:
        if args.eval_strategy == "no":
            self._keep(model, state.epoch, None)
            control.should_save = True

    def on_evaluate(
        self, args: Any, state: Any, control: Any, metrics: dict[str, float], model: Any = None, **kwargs: Any
    ) -> None:
        if metrics["eval_loss"] < self._best_loss():
            self._keep(model, state.epoch, metrics["eval_loss"])
        control.should_save = True

    def _best_loss(self) -> float:
        kept = read_best(self.folder)
        return float("inf") if kept is None or kept["loss"] is None else float(kept["loss"])

    def _keep(self, model: Any, epoch: float, loss: float | None) -> None:
        """Replace the kept adapter: a kill leaves the old one or the new one, which `read_best` finds."""
        new, old = (self.folder.with_name(f"{self.folder.name}.{end}") for end in ("new", "old"))
        for path in (new, old):
            shutil.rmtree(path, ignore_errors=True)
        model.save_pretrained(new, selected_adapters=[ADAPTER])
        write_json(new / EPOCH, {"epoch": epoch, "loss": loss})
        if self.folder.exists():
            self.folder.rename(old)
        new.rename(self.folder)
        shutil.rmtree(old, ignore_errors=True)
