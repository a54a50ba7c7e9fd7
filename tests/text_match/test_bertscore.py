"""BERTScore on tiny random encoders: what must hold, a second implementation, and the package ``bert-score``."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from random import Random
from typing import Any

import pytest

from ragworth.core.errors import MissingExtraError, ModelError
from ragworth.text_match import bertscore, token_encoder
from ragworth.text_match.bertscore import BERTScore, BERTScorePair
from ragworth.text_match.token_encoder import TokenEncoder
from tests.text_match import tiny_encoders

pytestmark = pytest.mark.torch

CLOSE = 1e-5
TEXTS = [
    "the cat sat on the mat.",
    "a dog ran far away",
    "the moon",
    "cats , dogs",
    "river under the old moon , far away .",
    "The DOG",
    "zebra",
]
LONG = "the cat sat on a mat " * 5  # 30 tokens, of which 14 fit between CLS and SEP


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_encoders.bert(tmp_path_factory.mktemp("bert"))


@pytest.fixture(scope="module")
def scorer(tiny: Path) -> BERTScore:
    return open_scorer(tiny, 2)


def open_scorer(folder: Path, layer: int | None = None) -> BERTScore:
    return BERTScore(TokenEncoder(str(folder), layer=layer))


def crossed(texts: Sequence[str]) -> tuple[list[str], list[str]]:
    return [a for a in texts for _ in texts], [b for _ in texts for b in texts]


def numbers(pairs: Sequence[BERTScorePair]) -> list[tuple[float, float, float]]:
    assert all(pair.status == "ok" for pair in pairs)
    return [(pair.precision or 0.0, pair.recall or 0.0, pair.f1 or 0.0) for pair in pairs]


def same(got: Sequence[BERTScorePair], wanted: Sequence[BERTScorePair]) -> None:
    for one, other in zip(numbers(got), numbers(wanted), strict=True):
        assert one == pytest.approx(other, abs=CLOSE)


@cache
def loaded(folder: Path) -> tuple[Any, Any]:
    from transformers import AutoModel, AutoTokenizer

    return AutoTokenizer.from_pretrained(folder), AutoModel.from_pretrained(folder).eval()


def direct(folder: Path, layer: int, candidate: str, reference: str) -> tuple[float, float]:
    """Precision and recall from the definition: one text at a time, all layers, a loop over tokens."""
    import torch

    tokenizer, model = loaded(folder)
    ends = {tokenizer.cls_token_id, tokenizer.sep_token_id}

    def read(text: str) -> tuple[list[int], list[Any]]:
        ids = tokenizer.encode(text, truncation=True, max_length=tiny_encoders.LIMIT)
        with torch.no_grad():
            states = model(torch.tensor([ids]), output_hidden_states=True).hidden_states[layer][0]
        return ids, list(states.double())

    def weight(token: int) -> float:
        return float(token not in ends)

    def mean(ids: list[int], mine: list[Any], theirs: list[Any]) -> float:
        best = [max(float(x @ y / (x.norm() * y.norm())) for y in theirs) for x in mine]
        weights = [weight(token) for token in ids]
        return sum(w * b for w, b in zip(weights, best, strict=True)) / sum(weights)

    (left_ids, left), (right_ids, right) = read(candidate), read(reference)
    return mean(left_ids, left, right), mean(right_ids, right, left)


@pytest.mark.parametrize("layer", [0, 1, 3])
@pytest.mark.parametrize("make", [tiny_encoders.bert, tiny_encoders.albert], ids=["bert", "albert"])
def test_equal_to_the_definition(make: Any, layer: int, tmp_path: Path) -> None:
    folder = make(tmp_path)
    texts = [*TEXTS[:4], LONG]
    pairs = list(zip(texts, [*texts[1:], texts[0]], strict=True))
    found = open_scorer(folder, layer).score(*zip(*pairs, strict=True))
    for (candidate, reference), (p, r, f1) in zip(pairs, numbers(found), strict=True):
        precision, recall = direct(folder, layer, candidate, reference)
        assert (p, r) == pytest.approx((precision, recall), abs=CLOSE)
        both_positive = min(precision, recall) > 0
        assert f1 == pytest.approx(2 * precision * recall / (precision + recall) if both_positive else 0, abs=CLOSE)


def test_equal_texts_score_1(scorer: BERTScore) -> None:
    for pair in numbers(scorer.score(TEXTS, [f"  {text}\n" for text in TEXTS])):
        assert pair == pytest.approx((1, 1, 1), abs=CLOSE)


def test_swapping_swaps_precision_and_recall(scorer: BERTScore) -> None:
    left, right = crossed(TEXTS)
    for (p, r, f1), (p2, r2, f2) in zip(
        numbers(scorer.score(left, right)), numbers(scorer.score(right, left)), strict=True
    ):
        assert (p, r, f1) == pytest.approx((r2, p2, f2), abs=CLOSE)
        assert -1 <= p <= 1 and -1 <= r <= 1 and 0 <= f1 <= 1
        assert f1 == 0 or min(p, r) - CLOSE <= f1 <= max(p, r) + CLOSE


def test_neither_batch_nor_order_nor_company_matters(scorer: BERTScore, tiny: Path, monkeypatch: Any) -> None:
    left, right = crossed([*TEXTS, LONG])
    together = scorer.score(left, right)
    mixed = Random(1).sample(range(len(left)), len(left))
    shuffled = scorer.score([left[i] for i in mixed], [right[i] for i in mixed])
    same(shuffled, [together[i] for i in mixed])
    same([scorer.score([a], [b])[0] for a, b in zip(left[::5], right[::5], strict=True)], together[::5])
    monkeypatch.setattr(token_encoder, "BATCH", 1)
    same(open_scorer(tiny, 2).score(left, right), together)
    monkeypatch.setattr(bertscore, "PAIRS_AT_A_TIME", 3)
    same(scorer.score(left, right), together)


def test_what_is_beyond_the_limit_is_counted(scorer: BERTScore) -> None:
    long, short = scorer.score([LONG, "the cat"], ["the cat", LONG])
    assert (long.candidate_cut, long.reference_cut) == (16, 0)
    assert (short.candidate_cut, short.reference_cut) == (0, 16)
    # Only what was kept is looked at.
    kept = " ".join(LONG.split()[:14])
    same(scorer.score([LONG], ["a dog"]), scorer.score([kept], ["a dog"]))
    assert scorer.score([kept], ["a dog"])[0].candidate_cut == 0


@pytest.mark.parametrize("nothing", ["", " \n\t"])
def test_an_empty_text_has_no_score_and_says_so(scorer: BERTScore, nothing: str) -> None:
    first, second, third, both = scorer.score([nothing, "the cat", "a", nothing], ["the cat", nothing, "a", nothing])
    assert first == BERTScorePair(None, None, None, "empty-candidate")
    assert second == BERTScorePair(None, None, None, "empty-reference")
    assert third.status == "ok"
    assert both.status == "empty-candidate"
    assert scorer.score([], []) == []


def test_roberta_reads_the_first_word_like_the_others(tmp_path: Path) -> None:
    scorer = open_scorer(tiny_encoders.roberta(tmp_path), 2)
    # "cat" at the beginning is the token for " cat": two tokens and the two ends.
    (made,) = scorer.encoder.tokens(["cat cat"])
    assert len(made.ids) == 4 and made.ids[1] == made.ids[2]
    assert numbers(scorer.score(["cat cat the"], ["cat cat the"]))[0] == pytest.approx((1, 1, 1), abs=CLOSE)


def test_the_limit_is_the_models_where_the_tokenizer_has_none(tmp_path: Path) -> None:
    scorer = open_scorer(tiny_encoders.roberta(tmp_path), 2)
    assert isinstance(scorer.encoder, token_encoder.TokenEncoder)
    assert scorer.encoder.limit == 24  # 26 positions, of which padding and what is before it take two
    (pair,) = scorer.score([" cat" * 40], ["cat"])
    assert (pair.status, pair.candidate_cut) == ("ok", 18)  # 40 + 2 − 24


def test_identity_names_all_that_decides_a_score(tiny: Path, tmp_path: Path) -> None:
    named = tmp_path / "bert-large-uncased"
    tiny_encoders.bert(named, layers=19)
    # The setting of the paper: the layer that is known to be best.
    plain = open_scorer(named)
    assert plain.encoder.layer == 18
    revision = plain.encoder.revision
    assert plain.identity == f"bertscore:bert-large-uncased@{revision} layer=18"
    same_again = open_scorer(named).identity
    others = [
        open_scorer(named, 17),
        open_scorer(tiny, 2),
    ]
    assert same_again == plain.identity
    assert len({plain.identity, *(other.identity for other in others)}) == 3


def test_an_unknown_layer_must_be_named(tiny: Path) -> None:
    with pytest.raises(ModelError, match="the best layer") as caught:
        open_scorer(tiny)
    assert "layer=0 to 3" in caught.value.expected
    for layer in (-1, 4):
        with pytest.raises(ModelError, match=f"layer is {layer}"):
            open_scorer(tiny, layer)


def test_an_encoder_that_is_not_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path))
    with pytest.raises(ModelError, match="'bert-large-uncased' is not in the local cache") as caught:
        TokenEncoder("bert-large-uncased")
    assert caught.value.remedy.startswith("hf download google-bert/bert-large-uncased")
    with pytest.raises(ModelError, match="no such folder"):
        TokenEncoder("./none", layer=1)
    with pytest.raises(ModelError, match=r"no config\.json"):
        open_scorer(tmp_path, 1)


def test_weights_that_cannot_be_read(tmp_path: Path) -> None:
    folder = tiny_encoders.bert(tmp_path)
    (folder / "model.safetensors").unlink()
    with pytest.raises(ModelError, match="weights cannot be read"):
        open_scorer(folder, 1).score(["the cat"], ["a dog"])


@pytest.mark.parametrize("package", ["torch", "transformers"])
def test_without_the_extra(package: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None if name == package else name)
    with pytest.raises(MissingExtraError, match=r'pip install "ragworth\[hf\]"'):
        TokenEncoder("bert-large-uncased")


@pytest.mark.parametrize("kind", ["bert", "roberta"])
@pytest.mark.filterwarnings("ignore")
def test_equal_to_the_package_of_the_authors(kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(os.environ, "MPLBACKEND", "agg")
    import bert_score

    if kind == "bert":
        folder = tiny_encoders.bert(tmp_path)
    else:
        # With transformers 5 the package no longer puts a blank before RoBERTa's first word, so its tokenizer must.
        folder = tiny_encoders.roberta(tmp_path, add_prefix_space=True, model_max_length=24)
    left, right = crossed([*TEXTS, LONG])
    wanted = bert_score.score(left, right, model_type=str(folder), num_layers=2, device="cpu", nthreads=0)
    found = numbers(open_scorer(folder, 2).score(left, right))
    for place in range(3):
        assert [row[place] for row in found] == pytest.approx(wanted[place].tolist(), abs=CLOSE)
