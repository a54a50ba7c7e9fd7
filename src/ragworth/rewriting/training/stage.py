"""One stage of training with one learning rate: SFT or DPO, with checkpoints that survive a kill.

The trainer writes a checkpoint every few steps. A stage that was killed goes on from the last complete one, with the
same order of examples and the same random numbers. The adapter of the epoch with the smallest held-out loss is kept.
"""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple

from ragworth.core.errors import ModelError
from ragworth.rewriting.training.base_model import TrainableModel
from ragworth.rewriting.training.kept_adapter import read_best, write_json
from ragworth.rewriting.training.settings import TrainingSettings

Kind = Literal["sft", "dpo"]
RESULT, BEST = "result.json", "best"


class TrainedStage(NamedTuple):
    """What became of a stage.

    Attributes
    ----------
    rate: its learning rate.
    epoch: the epoch whose adapter was kept.
    loss: the held-out loss of that epoch; None without held-out conversations.
    curve: the losses while training: step, epoch, and loss or held_out_loss, with the accuracy of preferences for DPO.
    """

    kind: str
    rate: float
    epoch: float
    loss: float | None
    curve: list[dict[str, float]]


class StageData(NamedTuple):
    """Encoded examples to train on and to choose by."""

    train: Sequence[dict[str, Any]]
    held_out: Sequence[dict[str, Any]]


def run_stage(
    kind: Kind,
    folder: Path,
    load: Callable[[], TrainableModel],
    data: StageData,
    rate: float,
    settings: TrainingSettings,
    start: Path | None,
    callbacks: Sequence[Any] = (),
) -> TrainedStage:
    """Train from an adapter, or from a new one, and keep the adapter of the best epoch in ``folder/best``."""
    done = folder / RESULT
    if done.is_file():
        return TrainedStage(**json.loads(done.read_text(encoding="utf-8")))
    folder.mkdir(parents=True, exist_ok=True)
    trainer = build_trainer(kind, folder, load(), data, rate, settings, start, callbacks)
    trainer.train(resume_from_checkpoint=_last_checkpoint(folder))
    history = trainer.state.log_history
    best = read_best(folder / BEST)
    if best is None:
        raise ModelError("training gave no adapter: every held-out loss is NaN", remedy="lower the learning rates")
    result = TrainedStage(kind, rate, best["epoch"], best["loss"], _curve(history))
    write_json(done, result._asdict())
    for checkpoint in folder.glob("checkpoint-*"):
        shutil.rmtree(checkpoint)
    return result


def build_trainer(
    kind: Kind,
    folder: Path,
    trainable: TrainableModel,
    data: StageData,
    rate: float,
    settings: TrainingSettings,
    start: Path | None,
    callbacks: Sequence[Any] = (),
) -> Any:
    """TRL's trainer for a stage, over examples that are tokens already."""
    from transformers import PrinterCallback

    from ragworth.rewriting.training.trainers import KeepBestEpoch, PreferenceTrainer, SupervisedTrainer

    held = _dataset(data.held_out) if data.held_out else None
    trainer: Any = {"sft": SupervisedTrainer, "dpo": PreferenceTrainer}[kind]
    made = trainer(
        model=_with_adapter(trainable.model, settings, start),
        args=_arguments(kind, folder, rate, settings, held is not None),
        train_dataset=_dataset(data.train),
        eval_dataset=held,
        processing_class=trainable.tokenizer,
        callbacks=[KeepBestEpoch(folder / BEST), *callbacks],
    )
    made.remove_callback(PrinterCallback)
    return made


def _dataset(examples: Sequence[dict[str, Any]]) -> Any:
    """Examples as TRL reads them. The fingerprint is our own: the library's pickles types, some of which it can't."""
    import pyarrow as pa
    from datasets import Dataset
    from datasets.table import InMemoryTable

    rows = list(examples)
    fingerprint = hashlib.sha256(json.dumps(rows).encode()).hexdigest()
    return Dataset(InMemoryTable(pa.Table.from_pylist(rows)), fingerprint=fingerprint)


def _arguments(kind: Kind, folder: Path, rate: float, settings: TrainingSettings, chooses: bool) -> Any:
    import torch
    from trl import DPOConfig, SFTConfig

    micro = min(settings.micro_batch, settings.batch)
    more: dict[str, Any] = {"beta": settings.beta} if kind == "dpo" else {"packing": False}
    return {"sft": SFTConfig, "dpo": DPOConfig}[kind](
        output_dir=str(folder),
        learning_rate=rate,
        num_train_epochs=settings.epochs,
        per_device_train_batch_size=micro,
        per_device_eval_batch_size=micro,
        gradient_accumulation_steps=settings.batch // micro,
        lr_scheduler_type="linear",
        warmup_steps=0.1,
        eval_strategy="epoch" if chooses else "no",
        save_strategy="steps",
        save_steps=settings.save_steps,
        save_total_limit=2,
        logging_steps=1,
        seed=settings.seed,
        data_seed=settings.seed,
        max_length=None,  # longer examples were left out
        bf16=torch.cuda.is_available(),
        gradient_checkpointing=False,
        use_cpu=not torch.cuda.is_available(),
        disable_tqdm=True,
        report_to=[],
        **more,
    )


def _with_adapter(model: Any, settings: TrainingSettings, start: Path | None) -> Any:
    """The model with a new adapter, or with one that goes on learning."""
    from peft import LoraConfig, PeftModel, get_peft_model
    from transformers import set_seed

    set_seed(settings.seed)
    if start is not None:
        return PeftModel.from_pretrained(model, start, is_trainable=True)
    lora = LoraConfig(
        r=settings.rank,
        lora_alpha=settings.alpha,
        lora_dropout=0.0,
        target_modules="all-linear",
        task_type="CAUSAL_LM",
    )
    return get_peft_model(model, lora)


def _last_checkpoint(folder: Path) -> str | None:
    """The last checkpoint that is complete; others, which a kill left behind, are removed."""
    found: list[tuple[int, Path]] = []
    for path in folder.glob("checkpoint-*"):
        try:
            state = json.loads((path / "trainer_state.json").read_text(encoding="utf-8"))  # written last
        except (OSError, ValueError):
            shutil.rmtree(path)
            continue
        found.append((int(state["global_step"]), path))
    return str(max(found)[1]) if found else None


def _curve(history: Sequence[dict[str, Any]]) -> list[dict[str, float]]:
    """The losses that the trainer logged."""
    names = {
        "loss": "loss",
        "eval_loss": "held_out_loss",
        "rewards/accuracies": "accuracy",
        "eval_rewards/accuracies": "held_out_accuracy",
    }
    return [
        {"step": row["step"], "epoch": row["epoch"]} | {ours: row[name] for name, ours in names.items() if name in row}
        for row in history
        if "loss" in row or "eval_loss" in row
    ]
