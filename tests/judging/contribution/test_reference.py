"""Contributions of a tiny random model, against a direct computation: one forward for each subset, in float64."""

from __future__ import annotations

from itertools import permutations
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")

from ragworth import Collection, annotate  # noqa: E402
from ragworth.judging.contribution.rows import context_rows  # noqa: E402
from ragworth.llm import llm, prompts  # noqa: E402
from tests.llm.local import tiny  # noqa: E402

pytestmark = pytest.mark.torch

PASSAGES = ["The cat sat on a mat near the inn.", "Rain.", "A theatre in the other town was burnt in the rain."]
QUERY, ANSWER = "Where is the cat?", "on a mat. In the inn."


def test_contributions_equal_a_direct_computation(tmp_path: Path) -> None:
    model, tokenizer = tiny.llama(), tiny.tokenizer()
    model.save_pretrained(tmp_path / "model")
    tokenizer.save_pretrained(tmp_path / "model")
    names = [f"p{n}" for n in range(len(PASSAGES))]
    world = Collection.of(
        queries={"query": ["q1"], "text": [QUERY]},
        passages={"passage": names, "text": PASSAGES},
        answers={"query": ["q1"], "text": [ANSWER]},
    )
    run = {"q1": {name: 3.0 - n for n, name in enumerate(names)}}
    reader = llm(f"hf:{tmp_path / 'model'}", device="cpu", dtype="float32")
    found = annotate("contribution", run, world, reader, answer="accepted")

    template = prompts.load_prompt("reply")
    whole = {"query": QUERY, "passages": [{"text": text} for text in PASSAGES]}

    def value(numbers: frozenset[int]) -> float:
        shown = {"query": QUERY, "passages": [{"text": PASSAGES[n]} for n in sorted(numbers)]}
        messages = template.render(shown, fenced_for=whole).messages
        text = tokenizer.apply_chat_template(
            [{"role": each.role, "content": each.content} for each in messages],
            tokenize=False,
            add_generation_prompt=True,
        )
        before = tokenizer(text, add_special_tokens=False)["input_ids"]
        after = tokenizer(ANSWER, add_special_tokens=False)["input_ids"]
        with torch.inference_mode():
            logits = model(torch.tensor([before + after])).logits[0].double()
        logs = torch.log_softmax(logits, -1)
        return float(sum(logs[len(before) + n - 1, token] for n, token in enumerate(after)))

    expected = [0.0] * len(PASSAGES)
    orders = list(permutations(range(len(PASSAGES))))
    for order in orders:
        before: frozenset[int] = frozenset()
        for number in order:
            expected[number] += (value(before | {number}) - value(before)) / len(orders)
            before |= {number}
    row = context_rows(found.frame).row(0, named=True)
    assert row["contributions"] == pytest.approx(expected, abs=2e-3)
    assert max(map(abs, expected)) > 0.05  # or it would show nothing
    assert row["sentences"] == ["on a mat.", "In the inn."]
    assert [sum(each) for each in zip(*row["by_sentence"], strict=True)] == pytest.approx(row["contributions"])
