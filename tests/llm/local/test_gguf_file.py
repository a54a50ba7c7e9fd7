"""GGUF files: what is read and what is refused, their tokenizers, and models built from them."""

from __future__ import annotations

import struct
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.tiers import slow

pytest.importorskip("gguf")
pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")
pytest.importorskip("tokenizers")

from ragworth.core.errors import ModelError
from ragworth.llm.local import gguf_file, onnx_model
from ragworth.llm.local.adapter import Adapter
from ragworth.llm.local.gguf_file import BpeTokenizer
from ragworth.llm.local.onnx_model import load_onnx
from ragworth.llm.local.runtime import LoadedModel, TokenRow
from tests.llm.local import made_gguf, made_safetensors


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("RAGWORTH_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return made_gguf.write(tmp_path / "tiny.gguf")


def asked(loaded: LoadedModel) -> list[float]:
    return loaded.runtime.read([TokenRow([5, 6, 7, 8], 3, [list(range(20))])])[0].logprobs[0]


def test_shape_and_texts_are_read(file: Path) -> None:
    model = gguf_file.read_gguf(file)
    shape, text = model.shape, model.text
    assert (shape.vocabulary, shape.hidden, shape.inner, shape.layers) == (275, 64, 128, 2)
    assert (shape.heads, shape.kv_heads, shape.head, shape.context) == (4, 2, 16, 2048)
    assert shape.theta == 10000.0
    assert shape.epsilon == pytest.approx(1e-5)
    assert text.chat_template == made_gguf.TEMPLATE
    assert (text.special["bos_token"], text.special["eos_token"]) == ("<|im_start|>", "<|im_end|>")
    assert text.control == made_gguf.CONTROL
    # The file names <|im_end|> as its end; <|endoftext|> is one too.
    assert text.ends == [0, 2]


@pytest.mark.torch
@pytest.mark.parametrize("options", [{"packed": True}, {"tied": False}], ids=["packed", "untied"])
def test_weights_are_those_that_transformers_reads(tmp_path: Path, options: dict[str, Any]) -> None:
    import transformers

    transformers.utils.logging.disable_progress_bar()
    path = made_gguf.write(tmp_path / "tiny.gguf", **options)
    theirs = transformers.AutoModelForCausalLM.from_pretrained(tmp_path, gguf_file=path.name).state_dict()
    ours = gguf_file.read_gguf(path).weights
    assert set(theirs) - set(ours) == ({"lm_head.weight"} if options.get("tied", True) else set())
    for name, value in ours.items():
        np.testing.assert_array_equal(value, theirs[name].numpy(), err_msg=name)


@pytest.mark.parametrize(
    ("fields", "found"),
    [
        ({"general.architecture": "gemma3"}, "its general.architecture is 'gemma3'"),
        ({"tokenizer.ggml.model": "llama"}, "its tokenizer.ggml.model is 'llama'"),
        ({"llama.expert_count": 8}, "its llama.expert_count is 8"),
        ({"llama.rope.scaling.type": "yarn"}, "its llama.rope.scaling.type is 'yarn'"),
    ],
)
def test_what_would_be_computed_wrongly_is_refused(tmp_path: Path, fields: dict[str, Any], found: str) -> None:
    path = made_gguf.write(tmp_path / "other.gguf", **fields)
    with pytest.raises(ModelError, match=found) as error:
        gguf_file.read_gguf(path)
    assert error.value.file == str(path)


@pytest.mark.parametrize("content", [b"", b"GGUF", b"not a model", b"GGUF\x03\x00\x00\x00" + bytes(200)])
def test_a_file_that_is_no_gguf_is_refused(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "odd.gguf"
    path.write_bytes(content)
    with pytest.raises(ModelError):
        gguf_file.read_gguf(path)


HEAD = b"GGUF" + struct.pack("<I", 3)
HUGE = 1 << 60


def text(value: bytes) -> bytes:
    return struct.pack("<Q", len(value)) + value


def field(name: bytes, kind: int, value: bytes) -> bytes:
    return HEAD + struct.pack("<QQ", 0, 1) + text(name) + struct.pack("<I", kind) + value


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (HEAD + struct.pack("<QQ", HUGE, 0), "shorter than"),
        (field(b"a", 9, struct.pack("<IQ", 4, HUGE)), "shorter than"),
        (field(b"a", 8, struct.pack("<Q", HUGE)), "shorter than"),
        (field(b"a", 9, struct.pack("<IQ", 9, 1) * 9), "a value has the type 9"),
        (HEAD + struct.pack("<QQ", 0, 1) + struct.pack("<Q", HUGE) + bytes(20), "shorter than"),
        (HEAD + struct.pack("<QQ", 1, 0) + text(b"t") + struct.pack("<I", 1 << 30) + bytes(64), "shorter than"),
        (b"GGUF" + struct.pack("<I", 77) + bytes(64), "its version is 77"),
        (HEAD, "shorter than"),
    ],
)
def test_a_header_that_announces_too_much_is_refused(tmp_path: Path, content: bytes, words: str) -> None:
    path = tmp_path / "hostile.gguf"
    path.write_bytes(content)
    with pytest.raises(ModelError, match=words) as error:
        gguf_file.read_gguf(path)
    assert error.value.file == str(path)


def test_a_file_without_its_last_weights_is_refused(file: Path) -> None:
    file.write_bytes(file.read_bytes()[:-64])
    with pytest.raises(ModelError, match="buffer is smaller"):
        gguf_file.read_gguf(file)


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"llama.context_length": 1 << 31}, "llama.context_length is '2147483648'"),
        ({"llama.attention.head_count_kv": 4096}, "cannot reshape"),
        ({"llama.block_count": 700}, "it lacks weights: blk.2.attn_norm.weight"),
        ({"tokenizer.ggml.bos_token_id": 1 << 20}, "out of range"),
    ],
)
def test_sizes_that_cannot_be_are_refused(tmp_path: Path, fields: dict[str, Any], words: str) -> None:
    with pytest.raises(ModelError, match=words):
        gguf_file.read_gguf(made_gguf.write(tmp_path / "odd.gguf", **fields))


def test_a_model_is_built_once_and_then_found(cache: Path, file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = load_onnx(file)
    monkeypatch.setattr(onnx_model, "_build", None)
    again = load_onnx(file)
    assert asked(again) == asked(first)
    ids = [each.writer.tokenizer.encode(["the <|im_end|>"], whole=True) for each in (first, again)]
    assert ids[0] == ids[1]
    assert again.writer.control == tuple(made_gguf.CONTROL)


@pytest.mark.parametrize("name", ["about.json", "model.onnx", *slow("model.bin", "probe.onnx", "tokenizer.json")])
def test_a_damaged_model_is_built_again(cache: Path, file: Path, name: str) -> None:
    before = asked(load_onnx(file))
    (folder,) = (cache / "models").iterdir()
    content = (folder / name).read_bytes()
    (folder / name).write_bytes(content[: len(content) // 2] + b"?" + content[len(content) // 2 + 1 :])
    if name == "about.json":
        (folder / name).write_bytes(content[:-5])
    assert asked(load_onnx(file)) == before
    assert (folder / name).read_bytes() == content
    (folder / name).unlink()
    assert asked(load_onnx(file)) == before
    assert [f.name for f in (cache / "models").iterdir()] == [folder.name]


def adapter(path: Path, name: str = "model.layers.0.mlp.up_proj", *, outputs: int = made_gguf.INNER) -> Adapter:
    """An adapter that adds 0.05 to every number of a matrix."""
    down, up = np.full((2, made_gguf.HIDDEN), 0.25, np.float16), np.full((outputs, 2), 0.1, np.float16)
    return Adapter(made_safetensors.write(path, {f"{name}.down": down, f"{name}.up": up}))


def test_an_adapter_is_merged_and_kept_apart(cache: Path, file: Path, tmp_path: Path) -> None:
    plain = load_onnx(file)
    one = adapter(tmp_path / "one.safetensors")
    adapted = load_onnx(file, adapter=one)
    assert asked(adapted) != asked(plain)
    assert len(list((cache / "models").iterdir())) == 2
    with pytest.raises(ModelError, match=r"the adapter changes model\.nonsense"):
        load_onnx(file, adapter=adapter(tmp_path / "odd.safetensors", "model.nonsense"))
    with pytest.raises(ModelError, match=r"by a matrix of \(3, 64\)"):
        load_onnx(file, adapter=adapter(tmp_path / "small.safetensors", outputs=3))


def test_loading_what_is_built_needs_neither_torch_nor_onnx(cache: Path, file: Path) -> None:
    load_onnx(file)
    code = (
        "import sys\nfrom pathlib import Path\nfrom ragworth.llm.local.onnx_model import load_onnx\n"
        "load_onnx(Path(sys.argv[1]))\n"
        "sys.stdout.write(str([m for m in ('torch', 'transformers', 'onnx', 'gguf') if m in sys.modules]))"
    )
    found = subprocess.run([sys.executable, "-c", code, str(file)], capture_output=True, text=True, check=True)
    assert found.stdout == "[]"


def test_a_cache_that_cannot_be_written_to_is_an_error(file: Path, cache: Path) -> None:
    cache.write_text("a file where a folder should be")
    with pytest.raises(ModelError, match="the model can't be saved") as error:
        load_onnx(file)
    assert "RAGWORTH_CACHE" in error.value.remedy


# Tokenizers: equal to the transformers library's, and back to the same text

TEXTS = [
    "",
    " ",
    "the cat and the hat",
    "Hello, world! It's the inn's 123rd hour; they'll've gone, WE'RE NOT.",
    "1234567890 12 3 ４５６ 3.14e-10",
    "naïve café — “quotes” … ½ cup",
    "日本語のテキスト、中文，한국어",
    "emoji 😀👩‍👩‍👧‍👦 and 🇩🇪, e\u0301",
    "def f(x):\n\treturn x**2  # ok\n\n\n    y = {'a': [1, 2]}\r\n",
    "   leading and trailing   \n",
    "\u00a0\u3000\u200b odd blanks",
    "<|im_start|>user\nthe <|im_end|>\n<|endoftext|> [note] <|im_start",
    "[note][note]the[note]",
    "\x00\x01\x7f control",
]


def made(splitting: str, **fields: Any) -> BpeTokenizer:
    folder = Path(tempfile.mkdtemp())
    path = made_gguf.write(folder / "tiny.gguf", **{"tokenizer.ggml.pre": splitting, **fields})
    return BpeTokenizer(gguf_file.read_tokenizer(path))


def pieces(splitting: str, text: str) -> list[str]:
    found = made(splitting).inner.pre_tokenizer.pre_tokenize_str(text)
    return [text[start:end] for _, (start, end) in found]


BUILT = {splitting: made(splitting) for splitting in ("gpt-2", "smollm", "llama-bpe")}


@pytest.mark.parametrize("splitting", ["gpt-2", "smollm", "llama-bpe"])
@pytest.mark.parametrize("text", TEXTS)
def test_tokens_spell_out_their_text(splitting: str, text: str) -> None:
    built = BUILT[splitting]
    (ids,) = built.encode([text], whole=False)
    assert built.inner.decode(ids, skip_special_tokens=False) == text
    for control in made_gguf.CONTROL:
        text = text.replace(control, "")
    assert built.decode(ids) == text


@given(st.text(), st.sampled_from(sorted(BUILT)))
def test_any_text_comes_back(text: str, splitting: str) -> None:
    (ids,) = BUILT[splitting].encode([text], whole=True)
    assert BUILT[splitting].inner.decode(ids, skip_special_tokens=False) == text


@pytest.mark.torch
def test_it_is_the_tokenizer_that_transformers_makes_of_the_file(tmp_path: Path) -> None:
    import transformers

    path = made_gguf.write(tmp_path / "tiny.gguf")
    theirs = transformers.AutoTokenizer.from_pretrained(tmp_path, gguf_file=path.name)
    ours = made("gpt-2")
    for text in TEXTS:
        if "[note]" not in text:  # which they do not know as a token of its own
            assert ours.encode([text], whole=True)[0] == theirs(text)["input_ids"], text


def test_ways_of_splitting_differ_in_digits_and_lines() -> None:
    text = " 12345's\n\n x"
    assert pieces("gpt-2", text) == [" 12345", "'s", "\n\n", " x"]
    assert pieces("smollm", text) == [" ", "1", "2", "3", "4", "5", "'s", "\n\n", " x"]
    assert pieces("llama-bpe", text) == [" ", "123", "45", "'s", "\n\n", " x"]


def test_a_bos_goes_in_front_of_a_whole_text_only() -> None:
    built = made("gpt-2", **{"tokenizer.ggml.add_bos_token": True})
    (whole,), (part,) = built.encode(["the"], whole=True), built.encode(["the"], whole=False)
    assert whole == [1, *part]
