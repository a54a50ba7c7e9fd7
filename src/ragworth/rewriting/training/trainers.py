"""TRL's trainers over examples that are tokens already, and the callback that keeps the best epoch."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

from transformers import TrainerCallback
from trl import DPOTrainer, SFTTrainer

from ragworth.rewriting.training.stage import ADAPTER, write_json


class SupervisedTrainer(SFTTrainer):
    """SFT on ``input_ids`` and ``labels``, which TRL takes as they are."""


class PreferenceTrainer(DPOTrainer):
    """DPO on ``prompt_ids``, ``chosen_ids`` and ``rejected_ids``. The reference is a frozen copy of the first adapter."""

    def _prepare_dataset(self, dataset: Any, *args: Any, **kwargs: Any) -> Any:
        """TRL would apply the tokenizer's own chat template, whose tokens may differ from those of the engine."""
        return dataset


class KeepBestEpoch(TrainerCallback):
    """Keeps the adapter of the epoch with the smallest held-out loss; without one, that of the last epoch."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def on_epoch_end(self, args: Any, state: Any, control: Any, model: Any = None, **kwargs: Any) -> None:
        if args.eval_strategy == "no":
            self._keep(model, state.epoch, None)

    def on_evaluate(
        self, args: Any, state: Any, control: Any, metrics: dict[str, float], model: Any = None, **kwargs: Any
    ) -> None:
        if metrics["eval_loss"] < self._best_loss():
            self._keep(model, state.epoch, metrics["eval_loss"])

    def _best_loss(self) -> float:
        try:
            loss = json.loads((self.folder / "epoch.json").read_text(encoding="utf-8"))["loss"]
        except OSError:
            return float("inf")
        return float("inf") if loss is None else float(loss)

    def _keep(self, model: Any, epoch: float, loss: float | None) -> None:
        """Replace the kept adapter in one step: a kill leaves the old one or the new one."""
        new, old = (self.folder.with_name(f"{self.folder.name}.{end}") for end in ("new", "old"))
        for path in (new, old):
            shutil.rmtree(path, ignore_errors=True)
        model.save_pretrained(new, selected_adapters=[ADAPTER])
        write_json(new / "epoch.json", {"epoch": epoch, "loss": loss})
        if self.folder.exists():
            self.folder.rename(old)
        new.rename(self.folder)
        shutil.rmtree(old, ignore_errors=True)
