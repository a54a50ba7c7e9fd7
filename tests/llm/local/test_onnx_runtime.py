"""Decoders as ONNX graphs: close to the transformers library's in floats, and the same whatever is read together."""

from __future__ import annotations

import math
import platform
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

pytest.importorskip("gguf")
pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")
pytest.importorskip("tokenizers")

from ragworth.core.errors import ModelError
from ragworth.llm.embedded import weights_file
from ragworth.llm.local import gguf_file
from ragworth.llm.local.onnx_build import write_decoder, write_probe
from ragworth.llm.local.onnx_model import load_onnx
from ragworth.llm.local.onnx_runtime import (
    MODEL,
    PIECE_TOKENS,
    PROBE,
    OnnxRuntime,
    OnnxSession,
    SessionOutput,
    has_exact_int8,
)
from ragworth.llm.local.runtime import RowLogprobs, SamplingDraw, TokenRow
from tests.llm.local import made_gguf

GREEDY = SamplingDraw(0.0, 1.0, 0.0)
Logs = NDArray[np.float64]

random = np.random.default_rng(3)
PREFIX = random.integers(0, 275, 21).tolist()
ROWS = [random.integers(0, 275, length).tolist() for length in (3, 50, 7, 20, 1, 20, 33)]


@pytest.fixture(scope="module")
def contents(tmp_path_factory: pytest.TempPathFactory) -> gguf_file.GgufModel:
    return gguf_file.read_gguf(made_gguf.write(tmp_path_factory.mktemp("gguf") / "tiny.gguf"))


def runtime(folder: Path, contents: gguf_file.GgufModel, threads: int = 2, signed: bool | None = None) -> OnnxRuntime:
    """A tiny model; its weights have a sign where processors multiply bytes exactly. Some x86 processors don't."""
    write_probe(folder)
    exact = has_exact_int8(folder / PROBE)
    write_decoder(folder, contents.shape, contents.weights, signed=exact if signed is None else signed and exact)
    return OnnxRuntime(folder / MODEL, "tiny", context=contents.shape.context, threads=threads)


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory, contents: gguf_file.GgufModel) -> OnnxRuntime:
    return runtime(tmp_path_factory.mktemp("tiny"), contents)


def whole(ids: list[int], first: int = 0) -> TokenRow:
    """All distributions from one place on."""
    return TokenRow(ids, first, [list(range(275))] * (len(ids) - first))


def logs(reads: list[RowLogprobs]) -> list[Logs]:
    return [np.array(read.logprobs) for read in reads]


def same(found: list[Logs], expected: list[Logs]) -> None:
    """Within what 32-bit floats may differ by. Integers do not forgive: a last bit can move a value by a whole step."""
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=0, atol=1e-5)


def transformers_model(contents: gguf_file.GgufModel) -> Any:
    import torch
    import transformers

    sizes = contents.shape
    config = transformers.LlamaConfig(
        vocab_size=sizes.vocabulary,
        hidden_size=sizes.hidden,
        intermediate_size=sizes.inner,
        num_hidden_layers=sizes.layers,
        num_attention_heads=sizes.heads,
        num_key_value_heads=sizes.kv_heads,
        head_dim=sizes.head,
        rms_norm_eps=sizes.epsilon,
        rope_parameters={"rope_type": "default", "rope_theta": sizes.theta},
        tie_word_embeddings="lm_head.weight" not in contents.weights,
        max_position_embeddings=sizes.context,
    )
    model = transformers.LlamaForCausalLM(config)
    model.load_state_dict({name: torch.tensor(value) for name, value in contents.weights.items()}, strict=False)
    model.tie_weights()
    return model.double().eval()


def reference(model: Any, ids: list[int]) -> Logs:
    """Log-probabilities after every token, by one plain forward in 64-bit floats."""
    import torch

    with torch.no_grad():
        logits = model(torch.tensor([ids])).logits[0].numpy()
    logits -= logits.max(axis=-1, keepdims=True)
    found: Logs = logits - np.log(np.exp(logits).sum(axis=-1, keepdims=True))
    return found


@pytest.mark.torch
@pytest.mark.parametrize("factors", [None, np.linspace(1, 8, 8, dtype=np.float32)], ids=["plain", "slowed"])
@pytest.mark.parametrize("tied", [True, False], ids=["tied", "untied"])
def test_it_is_close_to_transformers(tmp_path: Path, tied: bool, factors: Any) -> None:
    """With rotary frequencies as they are, or slowed down."""
    contents = gguf_file.read_gguf(made_gguf.write(tmp_path / "tiny.gguf", tied=tied, seed=5))
    model = transformers_model(contents)
    if factors is not None:
        contents.weights["model.rope_factors.weight"] = factors
        model.model.rotary_emb.inv_freq /= type(model.model.rotary_emb.inv_freq)(factors)
    ours = runtime(tmp_path, contents)
    reads = ours.read([whole(row) for row in ROWS], ours.prefix(PREFIX))
    for row, read in zip(ROWS, reads, strict=True):
        expected = reference(model, [*PREFIX, *row])[len(PREFIX) :]
        moved = 0.5 * np.abs(np.exp(expected) - np.exp(read.logprobs)).sum(axis=-1)
        assert moved.max() < 0.05
        assert np.abs(expected - read.logprobs).max() < 0.5
        entropies = -(np.exp(read.logprobs) * read.logprobs).sum(axis=-1)
        np.testing.assert_allclose(read.entropies, entropies, rtol=0, atol=1e-5)


def test_weights_with_and_without_a_sign_come_to_the_same(
    tmp_path: Path, contents: gguf_file.GgufModel, tiny: OnnxRuntime
) -> None:
    rows = [whole(row) for row in ROWS]
    same(logs(runtime(tmp_path, contents, signed=False).read(rows)), logs(tiny.read(rows)))


def test_results_do_not_depend_on_company_order_or_prefix(tiny: OnnxRuntime) -> None:
    prefix = tiny.prefix(PREFIX)
    together = logs(tiny.read([whole(row) for row in ROWS], prefix))
    same([logs(tiny.read([whole(row)], prefix))[0] for row in ROWS], together)
    same(logs(tiny.read([whole(row) for row in ROWS[::-1]], prefix))[::-1], together)
    same(logs(tiny.read([whole([*PREFIX, *row], len(PREFIX)) for row in ROWS])), together)
    shorter = tiny.prefix(PREFIX[:5])
    same(logs(tiny.read([whole([*PREFIX[5:], *row], len(PREFIX) - 5) for row in ROWS], shorter)), together)


def test_what_some_rows_have_in_common_is_read_once(tiny: OnnxRuntime, monkeypatch: pytest.MonkeyPatch) -> None:
    draw = np.random.default_rng(3)
    beginnings = [draw.integers(0, 275, size).tolist() for size in (600, 40, 9, 7, 9)]
    texts = [(begins, draw.integers(0, 275, 12).tolist()) for begins in beginnings for _ in range(3)]
    rows = [whole([*begins, *rest], len(begins) + 2) for begins, rest in texts]
    rows[-1] = whole(rows[-1].ids, 4)  # so its beginning, which is asked about, is too short to be read apart
    prefix, tokens = tiny.prefix(PREFIX), 0
    alone = [logs(tiny.read([row], prefix))[0] for row in rows]
    read = OnnxSession.read

    def count(session: OnnxSession, ids: list[list[int]], *others: Any, **options: Any) -> SessionOutput:
        nonlocal tokens
        pieces = len(ids) == 1 and len(ids[0]) > PIECE_TOKENS  # which are read by this method again
        tokens += 0 if pieces else sum(map(len, ids))
        return read(session, ids, *others, **options)

    monkeypatch.setattr(OnnxSession, "read", count)
    same(logs(tiny.read(rows, prefix)), alone)
    assert tokens == 15 * 12 + 600 + 40 + 9 + 3 * 7 + 3 * 9


def test_results_do_not_depend_on_threads(tmp_path: Path, contents: gguf_file.GgufModel, tiny: OnnxRuntime) -> None:
    rows = [whole(row) for row in ROWS]
    for threads in (1, 5):
        folder = tmp_path / str(threads)
        folder.mkdir()
        same(logs(runtime(folder, contents, threads).read(rows)), logs(tiny.read(rows)))


def test_a_long_text_is_read_in_pieces(tiny: OnnxRuntime) -> None:
    long = np.random.default_rng(1).integers(0, 275, 1300).tolist()
    found = logs(tiny.read([whole(long, 500)]))[0]
    assert found.shape == (800, 275)
    # Attention to a prefix, which is itself long enough to be read in pieces, comes to the same.
    same(logs(tiny.read([whole(long[700:])], tiny.prefix(long[:700]))), [found[200:]])
    same(logs(tiny.read([whole(long[:501], 500), whole(long[:7])]))[:1], [found[:1]])


def test_decoding_step_by_step_equals_reading(tiny: OnnxRuntime) -> None:
    """Rows of different lengths, dropped at different times, for longer than memory was set aside at first."""
    prefix = tiny.prefix(PREFIX)
    decoding = tiny.decode(ROWS, prefix)
    texts, alive = [list(row) for row in ROWS], list(range(len(ROWS)))
    ends = {0: 3, 5: 3, 6: 11, 1: 25}
    for step in range(40):
        found = decoding.pick([GREEDY] * len(alive))
        for place, row in enumerate(alive):
            texts[row].append(found.ids[place])
        keep = [place for place, row in enumerate(alive) if ends.get(row) != step]
        if step in (0, 3, 4, 11, 39):
            reads = tiny.read([whole(texts[row][:-1], len(texts[row]) - 2) for row in alive], prefix)
            for place, read in enumerate(reads):
                assert math.isclose(read.logprobs[0][found.ids[place]], found.logprobs[place], abs_tol=1e-5)
                assert max(read.logprobs[0]) == read.logprobs[0][found.ids[place]]
                assert math.isclose(read.entropies[0], found.entropies[place], abs_tol=1e-5)
        decoding.step([found.ids[place] for place in keep], keep)
        alive = [alive[place] for place in keep]
    assert len(alive) == 3


def test_what_is_decoded_does_not_depend_on_company(tiny: OnnxRuntime) -> None:
    def written(rows: list[list[int]]) -> list[list[int]]:
        decoding = tiny.decode(rows)
        texts: list[list[int]] = [[] for _ in rows]
        for _ in range(12):
            found = decoding.pick([GREEDY] * len(rows))
            for text, token in zip(texts, found.ids, strict=True):
                text.append(token)
            decoding.step(found.ids, range(len(rows)))
        return texts

    together = written(ROWS)
    assert [written([row])[0] for row in ROWS] == together
    assert written(ROWS[::-1])[::-1] == together


def test_a_text_beyond_the_context_is_refused(tmp_path: Path, contents: gguf_file.GgufModel) -> None:
    runtime(tmp_path, contents)
    short = OnnxRuntime(tmp_path / MODEL, "short", context=8, threads=1)
    with pytest.raises(ModelError, match="a text has 9 tokens"):
        short.read([whole(list(range(9)))])
    with pytest.raises(ModelError, match="a text has 9 tokens"):
        short.decode([[1, 2, 3]], short.prefix([1, 2, 3, 4, 5, 6]))
    decoding = short.decode([[1] * 8])
    with pytest.raises(ModelError, match="reached 8 tokens"):
        decoding.step([1], [0])


@pytest.mark.model
@pytest.mark.torch
def test_the_embedded_model_is_close_to_floats() -> None:
    """On questions about passages: no probability far off, mostly the same first choice, and one answer for all
    ways of asking."""
    loaded = load_onnx(weights_file())
    opened, tokenizer = loaded.runtime, loaded.writer.tokenizer
    assert isinstance(opened, OnnxRuntime)
    asked = [
        f"<|im_start|>system\nAnswer briefly.<|im_end|>\n<|im_start|>user\n{text}<|im_end|>\n<|im_start|>assistant\n"
        for text in (
            "Is a whale a fish? Answer yes or no.",
            "Passage: The Nile flows north through eleven countries.\nQuestion: Which way does the Nile flow?",
            "Rate from 0 to 3 how well 'Paris is large.' answers 'What is the capital of France?'",
            "Write one word that rhymes with cat.",
            "Passage: In 1969, two people walked on the Moon; 12 did in all.\nQuestion: How many walked there?",
            "def add(a, b):\n    return a + b\n\nWhat does this function do?",
        )
    ]
    ids = tokenizer.encode(asked, whole=True)
    everything = list(range(49152))
    rows = [TokenRow(row, len(row) - 1, [everything]) for row in ids]
    found = np.concatenate(logs(opened.read(rows)))
    prefix = opened.prefix(ids[0][:8])
    shared = np.concatenate(logs(opened.read([TokenRow(r.ids[8:], r.first - 8, r.wanted) for r in rows], prefix)))
    if platform.machine() in ("x86_64", "AMD64"):
        np.testing.assert_array_equal(found, shared)
    assert 0.5 * np.abs(np.exp(found) - np.exp(shared)).sum(axis=1).max() < 0.1
    assert loaded.writer.ends == {0, 2}
    assert tokenizer.decode(ids[3]).count("Write one word that rhymes with cat.") == 1

    model = transformers_model(gguf_file.read_gguf(weights_file())).float()
    exact = np.array([reference(model, row)[-1] for row in ids])
    moved = 0.5 * np.abs(np.exp(found) - np.exp(exact)).sum(axis=1)
    assert moved.mean() < 0.07, moved
    assert moved.max() < 0.15, moved
    likely = np.argsort(-exact, axis=1)[:, :20]
    apart = np.abs(np.take_along_axis(found, likely, 1) - np.take_along_axis(exact, likely, 1))
    assert apart.mean() < 0.2
    assert (found.argmax(axis=1) == exact.argmax(axis=1)).mean() >= 0.8
