"""vLLM and SGLang, through fakes with their interfaces, against the transformers library."""

from __future__ import annotations

import atexit
import json
import multiprocessing
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import ragworth
from ragworth.errors import ModelError
from ragworth.llm.contract import Choose, Failure, Generate, Prompt, Score
from ragworth.llm.serving import EngineSettings
from ragworth.llm.sglang import SglangEngine
from tests.llm import engine_fakes
from tests.llm.local import tiny

pytest.importorskip("transformers")
pytestmark = pytest.mark.torch

ENGINES = ("vllm", "sglang")
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
    monkeypatch.syspath_prepend(engine_fakes.install(tmp_path / "engines"))
    yield
    for name in ENGINES:
        sys.modules.pop(name, None)


def opened(engine: str, folder: Path, **options: Any) -> Any:
    return ragworth.llm(f"{engine}:{folder}", **options)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("estimator", ["first-token", "sequence"])
def test_labels_have_the_probabilities_of_the_library(engine: str, estimator: Any, folder: Path) -> None:
    labels = ("NO-RESPONSE", "Zq", "the") if estimator == "first-token" else ("yes", "not at all")
    asked = [Choose(prompt, labels, estimator) for prompt in CHATS]
    found = opened(engine, folder).choose(asked)
    wanted = opened("hf", folder).choose(asked)
    for one, other in zip(found, wanted, strict=True):
        assert one.probabilities == pytest.approx(other.probabilities, abs=1e-4)
        assert one.estimator == estimator


@pytest.mark.parametrize("engine", ENGINES)
def test_continuations_have_the_scores_of_the_library_but_no_entropies(engine: str, folder: Path) -> None:
    asked = [Score(prompt, text) for prompt in CHATS for text in ("N", "the other answer")]
    found = opened(engine, folder).score(asked)
    wanted = opened("hf", folder).score(asked)
    for one, other in zip(found, wanted, strict=True):
        assert one.trace.tokens == other.trace.tokens
        assert one.trace.logprobs == pytest.approx(other.trace.logprobs, abs=1e-3)
        assert one.trace.entropies is None


@pytest.mark.parametrize("engine", ENGINES)
def test_greedy_texts_are_those_of_the_library(engine: str, folder: Path) -> None:
    asked = [Generate(prompt, max_tokens=12, detail="logprobs", n=2) for prompt in CHATS]
    found = opened(engine, folder).generate(asked)
    wanted = opened("hf", folder).generate(asked)
    for one, other in zip(found, wanted, strict=True):
        assert [(o.text, o.finish) for o in one.outputs] == [(o.text, o.finish) for o in other.outputs]
        assert one.outputs[0].trace.logprobs == pytest.approx(other.outputs[0].trace.logprobs, abs=1e-3)
        assert one.usage.new_tokens == other.usage.new_tokens


@pytest.mark.parametrize("engine", ENGINES)
def test_a_text_to_stop_at_is_not_part_of_the_answer(engine: str, folder: Path) -> None:
    (whole,) = opened(engine, folder).generate([Generate(CHATS[0], max_tokens=12)])
    stop = whole.outputs[0].text[3:5]
    (found,) = opened(engine, folder).generate([Generate(CHATS[0], max_tokens=12, stop=(stop,))])
    assert found.outputs[0].text == whole.outputs[0].text[: whole.outputs[0].text.index(stop)]
    assert found.outputs[0].finish == "stop"


@pytest.mark.parametrize("engine", ENGINES)
def test_the_token_that_ends_a_turn_is_not_part_of_it(engine: str, folder: Path, tmp_path: Path) -> None:
    (whole,) = opened("hf", folder).generate([Generate(CHATS[0], max_tokens=12, detail="logprobs")])
    ids = whole.outputs[0].trace.ids
    end = next(token for token in ids[3:] if token not in ids[:3])
    other = shutil.copytree(folder, tmp_path / "other")
    (other / "generation_config.json").write_text(json.dumps({"eos_token_id": [end]}))
    (found,) = opened(engine, other).generate([Generate(CHATS[0], max_tokens=12, detail="logprobs")])
    assert found.outputs[0].trace.ids == ids[: ids.index(end)]
    assert found.outputs[0].finish == "stop"


@pytest.mark.parametrize("engine", ENGINES)
def test_log_probabilities_of_samples_are_those_before_the_temperature(engine: str, folder: Path) -> None:
    (made,) = opened(engine, folder).generate([Generate(CHATS[0], max_tokens=6, temperature=0.4, detail="logprobs")])
    trace = made.outputs[0].trace
    (wanted,) = opened("hf", folder).score([Score(CHATS[0], "", trace.ids)])
    assert trace.logprobs == pytest.approx(wanted.trace.logprobs, abs=1e-3)


def test_vllm_samples_by_seed(folder: Path) -> None:
    asked = [Generate(CHATS[0], max_tokens=12, temperature=1.0, n=3, seed=seed) for seed in (0, 0, 1)]
    first, again, other = ([output.text for output in one.outputs] for one in opened("vllm", folder).generate(asked))
    assert first == again
    assert first != other
    assert len(set(first)) > 1


@pytest.mark.parametrize("engine", ENGINES)
def test_entropies_and_prompts_that_are_too_long_are_refused(engine: str, folder: Path) -> None:
    model = opened(engine, folder, context_length=64)
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
    monkeypatch.setattr(engine_fakes.LLM, "shift", 1)
    closed: list[bool] = []
    monkeypatch.setattr("ragworth.llm.vllm.VllmEngine.close", lambda _: closed.append(True))
    with pytest.raises(ModelError, match="vllm gives other probabilities of a prompt's tokens"):
        opened("vllm", folder).choose([Choose(CHATS[0], ("a", "b"))])
    assert closed == [True]
    (unchecked,) = opened("vllm", folder, check=False).choose([Choose(CHATS[0], ("a", "b"))])
    assert 0 < unchecked.mass < 1


@pytest.mark.parametrize("engine", ENGINES)
def test_a_text_that_an_engine_gave_up_is_no_answer(engine: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine_fakes.Decoder, "extend", lambda self, ids, *_: ([1], [self.logprobs(ids)[-1]], "abort"))
    with pytest.raises(ModelError, match="gave up a text"):
        opened(engine, folder, check=False).generate([Generate(CHATS[0], max_tokens=4)])


def test_nothing_is_reported_and_an_engine_is_stopped(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VLLM_NO_USAGE_STATS", "0")
    opened("vllm", folder).choose([Choose(CHATS[0], ("a", "b"))])
    assert os.environ["VLLM_NO_USAGE_STATS"] == "1"
    assert os.environ["VLLM_LOGGING_STREAM"] == "ext://sys.stderr"
    monkeypatch.setattr(engine_fakes.Engine, "closed", False)
    model = opened("sglang", folder)
    model.choose([Choose(CHATS[0], ("a", "b"))])
    model.close()
    assert engine_fakes.Engine.closed


class StartingEngine:
    """An engine that starts a process, and would stop all of them, as SGLang's."""

    def __init__(self, **settings: Any) -> None:
        self.child = multiprocessing.get_context("spawn").Process(target=time.sleep, args=(60,))
        self.child.start()
        atexit.register(self.shutdown)

    def shutdown(self) -> None:
        raise AssertionError("it would stop the processes of others")


def test_only_the_processes_of_sglang_are_stopped(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setitem(sys.modules, "sglang", SimpleNamespace(Engine=StartingEngine))
    earlier = multiprocessing.get_context("spawn").Process(target=time.sleep, args=(60,))
    earlier.start()
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as other:
        try:
            engine = SglangEngine(EngineSettings(tmp_path, "float32", 512, 1, 0.5, ()))
            engine.close()
            engine.close()
            assert not engine._engine.child.is_alive()
            assert earlier.is_alive() and other.poll() is None
        finally:
            other.kill()
            earlier.kill()
            earlier.join()


@pytest.mark.parametrize("engine", ENGINES)
def test_each_engine_has_keys_of_its_own(engine: str, folder: Path) -> None:
    card = opened(engine, folder).card
    assert card.backend == engine
    assert card.identity != opened("hf", folder).card.identity
    assert card.context_length == 511


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"dtype": "int4"}, "dtype is 'int4'"),
        ({"gpus": 0}, "gpus is 0"),
        ({"memory": 1.5}, "memory is 1.5"),
        ({"context_length": 513}, "at most 512"),
    ],
)
def test_settings_that_cannot_be(options: dict[str, Any], expected: str, folder: Path) -> None:
    with pytest.raises(ModelError, match=expected):
        opened("vllm", folder, **options)
    with pytest.raises(ModelError, match="no option device"):
        opened("sglang", folder, device="cuda")


def test_an_engine_that_is_not_installed(folder: Path, tmp_path: Path) -> None:
    for name in ENGINES:
        (tmp_path / "engines" / f"{name}.py").unlink()
    with pytest.raises(ModelError, match="the package vllm is not installed"):
        opened("vllm", folder)
