"""vLLM, through a fake with its interface, against the transformers library."""

from __future__ import annotations

import json
import os
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import ragworth
from ragworth.core.errors import ModelError
from ragworth.llm.contract import Choose, Failure, Generate, Prompt, Score
from tests.llm import vllm_fake
from tests.llm.local import tiny

pytest.importorskip("transformers")
pytestmark = pytest.mark.torch

CHATS = [
    Prompt.chat("What is the name of the river?"),
    Prompt.chat("the answer in the other"),
    Prompt.text("in the answer:"),
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny.saved(tmp_path_factory.mktemp("model"))


@pytest.fixture(autouse=True)
def engines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.syspath_prepend(vllm_fake.install(tmp_path / "engines"))
    yield
    sys.modules.pop("vllm", None)


def opened(backend: str, folder: Path, **options: Any) -> Any:
    return ragworth.llm(f"{backend}:{folder}", **options)


@pytest.mark.parametrize("estimator", ["first-token", "sequence"])
def test_labels_have_the_probabilities_of_the_library(estimator: Any, folder: Path) -> None:
    labels = ("NO-RESPONSE", "Zq", "the") if estimator == "first-token" else ("yes", "not at all")
    asked = [Choose(prompt, labels, estimator) for prompt in CHATS]
    found = opened("vllm", folder).choose(asked)
    wanted = opened("hf", folder).choose(asked)
    for one, other in zip(found, wanted, strict=True):
        assert one.probabilities == pytest.approx(other.probabilities, abs=1e-4)
        assert one.estimator == estimator


def test_more_labels_than_vllm_gives_at_once(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ragworth.llm.vllm.LABEL_TOKENS", 2)
    asked = [Choose(CHATS[0], ("NO-RESPONSE", "Zq", "the", "in", "other"))]
    found = opened("vllm", folder).choose(asked)
    assert found[0].probabilities == pytest.approx(opened("hf", folder).choose(asked)[0].probabilities, abs=1e-4)


def test_continuations_have_the_scores_of_the_library_but_no_entropies(folder: Path) -> None:
    asked = [Score(prompt, text) for prompt in CHATS for text in ("N", "the other answer")]
    found = opened("vllm", folder).score(asked)
    wanted = opened("hf", folder).score(asked)
    for one, other in zip(found, wanted, strict=True):
        assert one.trace.tokens == other.trace.tokens
        assert one.trace.logprobs == pytest.approx(other.trace.logprobs, abs=1e-3)
        assert one.trace.entropies is None


def test_greedy_texts_are_those_of_the_library(folder: Path) -> None:
    asked = [Generate(prompt, max_tokens=12, detail="logprobs", n=2) for prompt in CHATS]
    found = opened("vllm", folder).generate(asked)
    wanted = opened("hf", folder).generate(asked)
    for one, other in zip(found, wanted, strict=True):
        assert [(o.text, o.finish) for o in one.outputs] == [(o.text, o.finish) for o in other.outputs]
        assert one.outputs[0].trace.logprobs == pytest.approx(other.outputs[0].trace.logprobs, abs=1e-3)
        assert one.usage.new_tokens == other.usage.new_tokens


def test_a_text_to_stop_at_is_not_part_of_the_answer(folder: Path) -> None:
    (whole,) = opened("vllm", folder).generate([Generate(CHATS[0], max_tokens=12)])
    stop = whole.outputs[0].text[3:5]
    (found,) = opened("vllm", folder).generate([Generate(CHATS[0], max_tokens=12, stop=(stop,))])
    assert found.outputs[0].text == whole.outputs[0].text[: whole.outputs[0].text.index(stop)]
    assert found.outputs[0].finish == "stop"


def test_the_token_that_ends_a_turn_is_not_part_of_it(folder: Path, tmp_path: Path) -> None:
    (whole,) = opened("hf", folder).generate([Generate(CHATS[0], max_tokens=12, detail="logprobs")])
    ids = whole.outputs[0].trace.ids
    end = next(token for token in ids[3:] if token not in ids[:3])
    other = shutil.copytree(folder, tmp_path / "other")
    (other / "generation_config.json").write_text(json.dumps({"eos_token_id": [end]}))
    (found,) = opened("vllm", other).generate([Generate(CHATS[0], max_tokens=12, detail="logprobs")])
    assert found.outputs[0].trace.ids == ids[: ids.index(end)]
    assert found.outputs[0].finish == "stop"


def test_log_probabilities_of_samples_are_those_before_the_temperature(folder: Path) -> None:
    (made,) = opened("vllm", folder).generate([Generate(CHATS[0], max_tokens=6, temperature=0.4, detail="logprobs")])
    trace = made.outputs[0].trace
    (wanted,) = opened("hf", folder).score([Score(CHATS[0], "", trace.ids)])
    assert trace.logprobs == pytest.approx(wanted.trace.logprobs, abs=1e-3)


def test_vllm_samples_by_seed(folder: Path) -> None:
    asked = [Generate(CHATS[0], max_tokens=12, temperature=1.0, n=3, seed=seed) for seed in (0, 0, 1)]
    first, again, other = ([output.text for output in one.outputs] for one in opened("vllm", folder).generate(asked))
    assert first == again
    assert first != other
    assert len(set(first)) > 1


def test_entropies_and_prompts_that_are_too_long_are_refused(folder: Path) -> None:
    model = opened("vllm", folder, context_length=64)
    assert "entropies" not in model.card.abilities
    (entropies,) = model.generate([Generate(CHATS[0], detail="entropies", max_tokens=4)])
    assert entropies.reason == "cannot"
    (longer,) = model.choose([Choose(Prompt.text("x" * 70), ("a", "b"))])
    assert longer.reason == "too-long"
    most = model.card.context_length - 1
    (fits,) = model.choose([Choose(Prompt.text("x" * (most - 1)), ("Z", "Q"))])  # and the token that begins a text
    assert not isinstance(fits, Failure)
    assert fits.usage.prompt_tokens == most


def test_an_engine_that_is_wrong_is_refused(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vllm_fake.LLM, "shift", 1)
    closed: list[bool] = []
    monkeypatch.setattr("ragworth.llm.vllm.VllmRuntime.close", lambda _: closed.append(True))
    with pytest.raises(ModelError, match="vLLM gives other probabilities of a prompt's tokens"):
        opened("vllm", folder).choose([Choose(CHATS[0], ("a", "b"))])
    assert closed == [True]
    (unchecked,) = opened("vllm", folder, check=False).choose([Choose(CHATS[0], ("a", "b"))])
    assert 0 < unchecked.mass < 1


def test_a_text_that_an_engine_gave_up_is_no_answer(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vllm_fake.Decoder, "extend", lambda self, ids, *_: ([1], [self.logprobs(ids)[-1]], "abort"))
    with pytest.raises(ModelError, match="gave up a text"):
        opened("vllm", folder, check=False).generate([Generate(CHATS[0], max_tokens=4)])


def test_nothing_is_reported(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VLLM_NO_USAGE_STATS", "0")
    opened("vllm", folder).choose([Choose(CHATS[0], ("a", "b"))])
    assert os.environ["VLLM_NO_USAGE_STATS"] == "1"
    assert os.environ["VLLM_LOGGING_STREAM"] == "ext://sys.stderr"


def test_a_script_without_a_guard_is_refused(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    script = tmp_path / "script.py"
    script.write_bytes(b"import ragworth  # __main__ of M\xfcller\n")
    monkeypatch.setattr(sys.modules["__main__"], "__file__", str(script), raising=False)
    with pytest.raises(ModelError, match="would run again") as error:
        opened("vllm", folder).choose([Choose(CHATS[0], ("a", "b"))])
    assert '__name__ == "__main__"' in str(error.value)
    script.write_text('if __name__ == "__main__":\n    main()\n')
    assert not isinstance(opened("vllm", folder).choose([Choose(CHATS[0], ("a", "b"))])[0], Failure)


def test_float8_has_keys_of_its_own(folder: Path) -> None:
    model = opened("vllm", folder, dtype="float8")
    assert model.card.quantisation == "float8"
    assert model.card.identity != opened("vllm", folder).card.identity
    assert not isinstance(model.choose([Choose(CHATS[0], ("a", "b"))])[0], Failure)


def test_keys_are_its_own(folder: Path) -> None:
    card = opened("vllm", folder).card
    assert card.backend == "vllm"
    assert card.identity != opened("hf", folder).card.identity
    assert card.context_length == 511
