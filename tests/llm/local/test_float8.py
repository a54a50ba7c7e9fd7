"""Products in float8: close to what they replace, one product for queries, keys and values, and clear refusals.

GPUs multiply, so the product itself is replaced by its definition here.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from ragworth.core.errors import ModelError  # noqa: E402
from ragworth.llm import llm  # noqa: E402
from ragworth.llm.local import float8  # noqa: E402
from ragworth.llm.local.runtime import TokenRow  # noqa: E402
from ragworth.llm.local.torch_runtime import TorchRuntime  # noqa: E402
from tests.llm.local import tiny  # noqa: E402

pytestmark = pytest.mark.torch


@pytest.fixture(autouse=True)
def products(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, int]]:
    """Sizes of the weights that were multiplied by."""
    sizes: list[tuple[int, int]] = []

    def multiply(rows: Any, weight: Any, *, scale_a: Any, scale_b: Any, out_dtype: Any, use_fast_accum: bool) -> Any:
        sizes.append(tuple(weight.shape))
        return ((rows.float() * scale_a) @ (weight.float() * scale_b)).to(out_dtype)

    monkeypatch.setattr(torch, "_scaled_mm", multiply)
    return sizes


def calm() -> Any:
    """A model whose small weights make it less sensitive to rounding."""
    return tiny.llama(initializer_range=0.1)


def test_queries_keys_and_values_are_one_product(products: list[tuple[int, int]]) -> None:
    model = calm()
    ids = torch.arange(12)[None] + 5
    with torch.inference_mode():
        before = model(input_ids=ids).logits.softmax(-1)
        float8.to_float8(model.get_decoder())
        after = model(input_ids=ids).logits.softmax(-1)
        again = model(input_ids=ids).logits.softmax(-1)
    layers, attention = model.config.num_hidden_layers, model.model.layers[0].self_attn
    assert len(products) == 2 * layers * (1 + 1 + 3)  # with the output of attention and the three of the MLP
    assert products[0] == (model.config.hidden_size, sum(attention.q_proj.product.sizes))
    assert attention.q_proj.pending == {}
    assert 0 < float((after - before).abs().sum(-1).max() / 2) < 0.1
    assert torch.equal(after, again)


def test_a_runtime_in_float8_is_near_and_shares_prefixes() -> None:
    ids = [7 + n for n in range(20)]
    row = TokenRow(ids, 19, [[5, 6]])
    exact = TorchRuntime(calm(), "float32").read([row])[0].logprobs[0]
    narrow = TorchRuntime(calm(), "float8", float8=True)
    whole = narrow.read([row])[0].logprobs[0]
    rest = narrow.read([TokenRow(ids[8:], 11, [[5, 6]])], narrow.prefix(ids[:8]))[0].logprobs[0]
    assert whole == pytest.approx(exact, abs=0.2)
    assert rest == pytest.approx(whole, abs=0.2)


def test_a_model_that_float8_ruins_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    right = torch._scaled_mm
    monkeypatch.setattr(torch, "_scaled_mm", lambda *args, **kwargs: -20 * right(*args, **kwargs))
    with pytest.raises(ModelError, match=r"(?s)distributions differ from its own by .*bfloat16"):
        TorchRuntime(tiny.llama(tie_word_embeddings=False, initializer_range=0.5), "float8", float8=True)


def test_a_cpu_can_not_multiply_in_float8(tmp_path: Path) -> None:
    folder = tiny.saved(tmp_path / "model")
    with pytest.raises(ModelError, match=r"(?s)'cpu' can't multiply in 8 bits.*dtype=bfloat16"):
        llm(f"hf:{folder}", device="cpu", dtype="float8")
    with pytest.raises(ModelError, match="float16, float8"):
        llm(f"hf:{folder}", device="cpu", dtype="int4")
