"""What is read out of GGUF files, and what is refused; models built of them, kept and found again."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.tiers import slow

pytest.importorskip("gguf")
pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")
pytest.importorskip("tokenizers")

from ragworth.core.errors import ModelError
from ragworth.llm.local import gguf_file, onnx_model
from ragworth.llm.local.adapter import Adapter
from ragworth.llm.local.runtime import TokenRow
from tests.llm.local import made_gguf, made_safetensors


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("RAGWORTH_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return made_gguf.write(tmp_path / "tiny.gguf")


def asked(opened: onnx_model.OpenedOnnxModel) -> list[float]:
    return opened.runtime.read([TokenRow([5, 6, 7, 8], 3, [list(range(20))])])[0].logprobs[0]


def test_sizes_vocabulary_and_template_are_read(file: Path) -> None:
    found = gguf_file.read_gguf(file)
    assert (found.name, found.license, found.chat_template) == ("Tiny", "apache-2.0", made_gguf.TEMPLATE)
    sizes = found.sizes
    assert (sizes.vocabulary, sizes.hidden, sizes.inner, sizes.layers) == (275, 64, 128, 2)
    assert (sizes.heads, sizes.kv_heads, sizes.head, sizes.context) == (4, 2, 16, 2048)
    assert sizes.theta == 10000.0
    assert sizes.epsilon == pytest.approx(1e-5)
    assert (list(found.vocabulary.tokens), list(found.vocabulary.types)) == made_gguf.vocabulary()
    assert (found.bos, found.eos, found.vocabulary.bos) == ("<|im_start|>", "<|im_end|>", None)
    # The file names <|im_end|> as its end; <|endoftext|> is one too.
    assert found.ends == (0, 2)


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


def test_a_model_is_built_once_and_then_found(cache: Path, file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = onnx_model.load(file)
    (folder,) = (cache / "models").iterdir()
    assert sorted(f.name for f in folder.iterdir()) == [
        "facts.json",
        "model.bin",
        "model.onnx",
        "probe.onnx",
        "tokenizer.json",
    ]
    monkeypatch.setattr(onnx_model, "_build", None)
    again = onnx_model.load(file)
    assert again.facts == first.facts
    assert asked(again) == asked(first)
    assert again.tokenizer.encode(["the <|im_end|>"], whole=True) == first.tokenizer.encode(
        ["the <|im_end|>"], whole=True
    )
    assert again.facts.control == tuple(made_gguf.CONTROL)
    assert again.runtime.name == again.facts.quantisation


@pytest.mark.parametrize("name", ["facts.json", "model.onnx", *slow("model.bin", "probe.onnx", "tokenizer.json")])
def test_a_damaged_model_is_built_again(cache: Path, file: Path, name: str) -> None:
    before = asked(onnx_model.load(file))
    (folder,) = (cache / "models").iterdir()
    content = (folder / name).read_bytes()
    (folder / name).write_bytes(content[: len(content) // 2] + b"?" + content[len(content) // 2 + 1 :])
    if name == "facts.json":
        (folder / name).write_bytes(content[:-5])
    assert asked(onnx_model.load(file)) == before
    assert (folder / name).read_bytes() == content
    (folder / name).unlink()
    assert asked(onnx_model.load(file)) == before
    assert [f.name for f in (cache / "models").iterdir()] == [folder.name]


def adapter(path: Path, name: str = "model.layers.0.mlp.up_proj", *, outputs: int = made_gguf.INNER) -> Adapter:
    """An adapter that adds 0.05 to every number of a matrix."""
    down, up = np.full((2, made_gguf.HIDDEN), 0.25, np.float16), np.full((outputs, 2), 0.1, np.float16)
    return Adapter(made_safetensors.write(path, {f"{name}.down": down, f"{name}.up": up}))


def test_an_adapter_is_merged_and_kept_apart(cache: Path, file: Path, tmp_path: Path) -> None:
    plain = onnx_model.load(file)
    one = adapter(tmp_path / "one.safetensors")
    adapted = onnx_model.load(file, adapter=one)
    assert asked(adapted) != asked(plain)
    assert adapted.facts.revision == f"{plain.facts.revision}+{one.digest}"
    assert len(list((cache / "models").iterdir())) == 2
    with pytest.raises(ModelError, match=r"the adapter changes model\.nonsense"):
        onnx_model.load(file, adapter=adapter(tmp_path / "odd.safetensors", "model.nonsense"))
    with pytest.raises(ModelError, match=r"by a matrix of \(3, 64\)"):
        onnx_model.load(file, adapter=adapter(tmp_path / "small.safetensors", outputs=3))


def test_loading_what_is_built_needs_neither_torch_nor_onnx(cache: Path, file: Path) -> None:
    onnx_model.load(file)
    code = (
        "import sys\nfrom pathlib import Path\nfrom ragworth.llm.local.onnx_model import load\n"
        "load(Path(sys.argv[1]))\n"
        "sys.stdout.write(str([m for m in ('torch', 'transformers', 'onnx', 'gguf') if m in sys.modules]))"
    )
    found = subprocess.run([sys.executable, "-c", code, str(file)], capture_output=True, text=True, check=True)
    assert found.stdout == "[]"


def test_a_cache_that_cannot_be_written_to_is_an_error(file: Path, cache: Path) -> None:
    cache.write_text("a file where a folder should be")
    with pytest.raises(ModelError, match="the model can't be saved") as error:
        onnx_model.load(file)
    assert "RAGWORTH_CACHE" in error.value.remedy
