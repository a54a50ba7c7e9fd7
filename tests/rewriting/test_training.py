"""Training: what TRL computes is what DPO is, prompts are the engine's, and a kill changes nothing."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import polars as pl
import pytest

from ragworth.core.errors import InputError, ModelError, RagworthError
from ragworth.data.conversations import turns_of
from ragworth.judging.rewriter import render_turn
from ragworth.llm import llm
from ragworth.llm.contract import Score, Scored, ScoringModel
from ragworth.llm.prompts import load_prompt
from ragworth.rewriting.training.examples import SAME_TEXTS, ExampleEncoder, require_examples
from ragworth.rewriting.training.run import TrainedRewriter, split_by_conversation
from ragworth.rewriting.training.settings import TrainingSettings
from tests.rewriting.conversation_samples import conversations, training_run

ROOT = Path(__file__).parents[2]


SMALL = {"hidden_size": 16, "intermediate_size": 16, "num_attention_heads": 2, "num_key_value_heads": 1, "head_dim": 8}
"""The shape of a model that trains in a second."""


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    from tests.llm.local import tiny

    folder: Path = tmp_path_factory.mktemp("tiny")
    tiny.llama(layers=1, max_position_embeddings=4096, **SMALL).save_pretrained(folder)
    tiny.tokenizer().save_pretrained(folder)
    return folder


@pytest.fixture(scope="module")
def trained(base: Path, tmp_path_factory: pytest.TempPathFactory) -> TrainedRewriter:
    return training_run(tmp_path_factory.mktemp("trained") / "rewriter", base).train()


@pytest.fixture(scope="module")
def batch(base: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Any, Any]:
    """A DPO trainer whose policy has left its reference, and a batch of two pairs."""
    import torch

    from ragworth.rewriting.training.base_model import find_base, load_base
    from ragworth.rewriting.training.stage import StageData, build_trainer

    run = training_run(tmp_path_factory.mktemp("batch") / "out", base)
    trainable = load_base(find_base(run.base))
    end = trainable.tokenizer.eos_token_id
    encoder = ExampleEncoder(trainable.encoder, end, load_prompt("rewrite"), run.turns, run.settings)
    assert run.pairs is not None
    rows = encoder.dpo(run.pairs.head(2).rows()).rows
    folder = tmp_path_factory.mktemp("stage")
    trainer = build_trainer("dpo", folder, trainable, StageData(rows, ()), 1e-3, run.settings, None)
    torch.manual_seed(1)
    with torch.no_grad():
        for name, weights in trainer.model.named_parameters():
            if "lora_B.default" in name:
                weights.add_(torch.randn_like(weights) * 0.05)
    return trainer, trainer.data_collator([dict(row) for row in rows])


def log_probabilities(model: Any, inputs: Any) -> Any:
    """Sums of the log-probabilities of the completions, token by token, without TRL."""
    import torch

    with torch.enable_grad():
        logits = model(input_ids=inputs["input_ids"], attention_mask=inputs["attention_mask"]).logits[:, :-1].float()
    picked = logits.log_softmax(-1).gather(2, inputs["input_ids"][:, 1:, None])[..., 0]
    return (picked * inputs["completion_mask"][:, 1:]).sum(1)


@pytest.mark.torch
@pytest.mark.slow
def test_loss_and_gradients_of_dpo_equal_a_direct_computation(batch: tuple[Any, Any]) -> None:
    """DPO: −log σ(β·((log π(y_w) − log π_ref(y_w)) − (log π(y_l) − log π_ref(y_l)))), averaged over pairs."""
    import torch

    trainer, inputs = batch
    model = trainer.model.eval()
    weights = {name: each for name, each in model.named_parameters() if each.requires_grad}
    assert weights
    assert all(".default." in name for name in weights)  # the reference is frozen
    model.zero_grad()
    theirs = trainer.compute_loss(model, dict(inputs))
    theirs.backward()
    gradients = {name: each.grad.clone() for name, each in weights.items()}
    model.zero_grad()
    chosen, rejected = log_probabilities(model, inputs).chunk(2)
    with torch.no_grad():
        model.set_adapter("ref")
        before = log_probabilities(model, inputs).chunk(2)
        model.set_adapter("default")
    margin = (chosen - before[0].detach()) - (rejected - before[1].detach())
    ours = -torch.nn.functional.logsigmoid(0.1 * margin).mean()
    ours.backward()
    assert abs(margin).min() > 1e-3  # otherwise any loss would be log 2
    assert theirs.item() == pytest.approx(ours.item(), rel=1e-5)
    for name, each in weights.items():
        assert torch.allclose(each.grad, gradients[name], rtol=1e-3, atol=1e-6), name
    assert max(float(gradient.abs().max()) for gradient in gradients.values()) > 1e-3


@pytest.mark.torch
@pytest.mark.slow
def test_log_probabilities_are_those_of_the_engine(base: Path, trained: TrainedRewriter) -> None:
    """The engine, which rewrites with the adapter, and the trainer see the same prompts and the same probabilities."""
    import torch
    from peft import PeftModel

    from ragworth.rewriting.training.base_model import find_base, load_base

    turns = {turn.query: turn for turn in turns_of(conversations()) if turn.history}
    template = load_prompt("rewrite")
    trainable = load_base(find_base(f"hf:{base}"))
    end = trainable.tokenizer.eos_token_id
    encoder = ExampleEncoder(trainable.encoder, end, template, turns, TrainingSettings())
    (row,) = encoder.dpo([("c1-2", "Who built the lighthouse?", "Who built it?")]).rows
    model = PeftModel.from_pretrained(trainable.model, trained.folder).eval()
    engine = llm(str(trained.folder))  # hf: with the adapter added to its weights
    assert isinstance(engine, ScoringModel)
    prompt = render_turn(template, turns["c1-2"], TrainingSettings().history)
    for side, text in (("chosen_ids", "Who built the lighthouse?"), ("rejected_ids", "Who built it?")):
        ids = torch.tensor([row["prompt_ids"] + row[side]])
        with torch.no_grad():
            logs = model(input_ids=ids).logits[0, :-1].log_softmax(-1)
        start = len(row["prompt_ids"]) - 1
        direct = [float(logs[start + n, token]) for n, token in enumerate(row[side])]
        (scored,) = engine.score([Score(prompt, text)])
        assert isinstance(scored, Scored)
        assert list(scored.trace.ids or ()) in ([], row[side][:-1])
        # The trainer's rewrite has one more token: the end of the turn.
        assert scored.trace.logprobs == pytest.approx(direct[:-1], abs=1e-4)
        assert row[side][-1] == end
    engine.close()


@pytest.mark.torch
@pytest.mark.slow
def test_an_adapter_is_safetensors_and_is_not_trained_twice(base: Path, trained: TrainedRewriter) -> None:
    files = {str(path.relative_to(trained.folder)) for path in trained.folder.rglob("*") if path.is_file()}
    assert {"adapter_config.json", "adapter_model.safetensors", "training.json"} <= files
    assert not [name for name in files if name.endswith((".bin", ".pt", ".pth", ".pkl"))]
    assert not trained.folder.with_name("rewriter.partial").exists()
    about = json.loads((trained.folder / "training.json").read_text())
    assert [stage["stage"] for stage in about["chosen"]] == ["sft", "dpo"]
    assert {stage["rate"] for stage in about["curves"] if stage["kind"] == "dpo"} == {1e-3, 1e-2}
    losses = {stage["rate"]: stage["loss"] for stage in about["curves"] if stage["kind"] == "dpo"}
    assert about["chosen"][1]["loss"] == min(losses.values())  # the rate is chosen on held-out conversations
    again = training_run(trained.folder, base).train()
    assert not again.trained
    with pytest.raises(InputError, match="nothing is overwritten"):
        training_run(trained.folder, base, settings={"seed": 1}).train()


@pytest.mark.torch
@pytest.mark.slow
def test_training_that_is_killed_again_and_again_ends_with_the_same_adapter(
    base: Path, trained: TrainedRewriter, tmp_path: Path
) -> None:
    output = tmp_path / "rewriter"
    places = ["sft 3 whole", "dpo-0.001 2 broken", "dpo-0.01 5 whole"]
    command = [sys.executable, "-m", "tests.rewriting.killed_training", str(output), str(base), *places]
    killed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    assert killed.stdout.split() == [str(-signal.SIGKILL)] * 3, killed.stderr[-2000:]
    assert not output.exists()
    assert output.with_name("rewriter.partial").exists()
    resumed = training_run(output, base).train()
    weights = (output / "adapter_model.safetensors").read_bytes()
    assert weights == (trained.folder / "adapter_model.safetensors").read_bytes()
    assert resumed.about["chosen"] == trained.about["chosen"]


@pytest.mark.torch
@pytest.mark.slow
def test_an_adapter_on_another_base_is_refused(trained: TrainedRewriter, tmp_path: Path) -> None:
    from tests.llm.local import tiny

    with pytest.raises(ModelError, match="trained on another model"):
        llm(f"hf:{trained.folder}", base=str(tiny.saved(tmp_path / "other")))
    with pytest.raises(ModelError, match="trained on another model"):
        training_run(tmp_path / "out", tmp_path / "other", start=trained.folder).plan()


def test_conversations_are_never_on_both_sides_of_the_split() -> None:
    conversation = {f"c{n}-{turn}": f"c{n}" for n in range(30) for turn in range(4)}
    found = split_by_conversation(list(conversation), conversation, 0.2, 0)
    train, held = ({conversation[query] for query in side} for side in (found.train, found.held_out))
    assert not train & held
    assert len(held) == 6  # 20 % of 30
    assert (
        split_by_conversation(list(reversed(conversation)), conversation, 0.2, 0).conversations == found.conversations
    )
    assert split_by_conversation(list(conversation), conversation, 0.2, 1).conversations != found.conversations
    with pytest.raises(InputError, match="at least one to train on"):
        split_by_conversation(["c1-0"], conversation, 0.5, 0)


def test_bad_settings_are_refused_together() -> None:
    with pytest.raises(InputError) as error:
        TrainingSettings(epochs=0, dpo_rates=(0.0,), batch=10, micro_batch=4)
    words = str(error.value)
    assert "epochs is 0" in words
    assert "a learning rate is 0.0" in words
    assert "no multiple of micro_batch" in words
    with pytest.raises(InputError, match="batch is 0"):
        TrainingSettings(batch=0)
    with pytest.raises(InputError, match="no held-out conversations to choose one by"):
        TrainingSettings(held_out=0.0)


def test_empty_and_equal_rewrites_are_not_trained_on(tmp_path: Path) -> None:
    """An empty one is an error before a model is loaded. A pair of equal ones has no gradient: it is counted."""
    pairs = pl.DataFrame({"query": ["c1-2"], "chosen": ["Who built the lighthouse?"], "rejected": [" "]})
    with pytest.raises(InputError, match="rejected of the query 'c1-2' is empty"):
        training_run(tmp_path / "out", tmp_path, pairs=pairs).plan()
    encoder = ExampleEncoder(cast(Any, None), 0, load_prompt("rewrite"), {}, TrainingSettings())
    found = encoder.dpo([("c1-2", "Who built it?", "Who built it?")])
    assert (found.rows, found.left_out) == ([], {SAME_TEXTS: 1})
    with pytest.raises(InputError, match="both rewrites are the same: 1 example"):
        require_examples(found, "example for dpo")


def test_nothing_to_train_on_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="there is nothing to train on"):
        training_run(tmp_path / "out", tmp_path, best=None, pairs=None).plan()


@pytest.mark.parametrize("base", ["scripted:b", "hf:nowhere"])
def test_a_plan_refuses_a_base_that_cannot_be_trained(tmp_path: Path, base: str) -> None:
    with pytest.raises(RagworthError, match=r"base model is 'scripted:b'|nowhere"):
        replace(training_run(tmp_path / "out", tmp_path), base=base).plan()
