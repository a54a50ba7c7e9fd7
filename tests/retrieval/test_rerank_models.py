"""Cross-encoders: tiny ones made here, saved to a folder, and held against the library used directly."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from ragworth.core.errors import InputError, ModelError
from ragworth.retrieval import Pipeline, retrieve
from ragworth.retrieval.encoders.sentence_transformer import PairScore, PairScorer
from ragworth.retrieval.pipeline import unscored_contexts
from ragworth.retrieval.steps import cross_encoder
from ragworth.retrieval.steps.cross_encoder import Rerank
from tests.retrieval.samples import passages, world
from tests.retrieval.tiny import CONFIG, write_encoder

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")
pytest.importorskip("sentence_transformers")

pytestmark = pytest.mark.torch

TEXTS = {"a": "the mill", "b": "ann built the old mill twice", "c": "bread corn", "d": "old", "e": ""}
QUERIES = {"q": "who built the mill", "r": "bread"}
PAIRS = [(query, text) for query in QUERIES.values() for text in TEXTS.values() if text]
LENGTH = 16


def cross(folder: Path, labels: int = 1) -> Path:
    """A cross-encoder of a few kilobytes with random weights."""
    write_encoder(folder, longest=LENGTH)
    for name in ("modules.json", "config_sentence_transformers.json"):
        (folder / name).unlink()
    torch.manual_seed(labels)
    config = transformers.BertConfig(**CONFIG, num_labels=labels, initializer_range=0.5)
    transformers.BertForSequenceClassification(config).save_pretrained(folder)
    return folder


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> Path:
    base = tmp_path_factory.mktemp("models")
    for labels, name in enumerate(("one", "two", "three"), 1):
        cross(base / name, labels)
    return base


@pytest.fixture(autouse=True)
def afresh() -> None:
    cross_encoder._shared_scorer.cache_clear()


def plain_score(folder: Path, query: str, passage: str, length: int = LENGTH) -> float:
    """One pair alone, by the transformers library itself."""
    model = transformers.AutoModelForSequenceClassification.from_pretrained(folder).eval()
    words = transformers.AutoTokenizer.from_pretrained(folder)
    with torch.no_grad():
        inputs = words(query, passage, truncation=True, max_length=length, return_tensors="pt")
        logits = model(**inputs).logits[0].double()
    return float(logits[0] if len(logits) == 1 else logits[1] - logits[0])


@pytest.mark.parametrize("name", ["one", "two"])
def test_scores_are_those_of_the_model(folders: Path, name: str) -> None:
    scores = [score.value for score in PairScorer(name, folders).score(PAIRS)]
    assert scores == pytest.approx([plain_score(folders / name, *pair) for pair in PAIRS], rel=1e-5, abs=1e-5)
    assert len(set(scores)) == len(scores)


def test_passages_come_by_score(folders: Path) -> None:
    context = world(TEXTS, QUERIES, None, folder=folders)
    before = unscored_contexts([("q", list("abcde")), ("r", ["d", "c"])])
    contexts = Rerank("cross-encoder:one").apply(before, context)
    for query in QUERIES:
        rows = contexts.frame.filter(query=query).sort("rank")
        scores = rows["score"].drop_nulls().to_list()
        assert scores == sorted(scores, reverse=True)
        shown = [each for each in rows["passage"] if TEXTS[each]]
        assert scores == pytest.approx(
            [plain_score(folders / "one", QUERIES[query], TEXTS[each]) for each in shown], rel=1e-5, abs=1e-5
        )
    assert contexts.frame.filter(query="q")["passage"][-1] == "e"  # there is nothing to read in it
    assert "1 passage without a text" in contexts.notes[0]
    head = Rerank("one", depth=1).apply(before, context)
    assert head.frame.filter(query="q")["passage"].to_list() == list("abcde")


def test_long_passages_are_cut_and_counted(folders: Path, tmp_path: Path) -> None:
    long = "bread " * 40
    context = world({"a": long, "b": "old mill"}, {"q": "the mill"}, None, folder=folders, cache=tmp_path)
    before = unscored_contexts([("q", ["a", "b"])])
    for step, length in ((Rerank("one"), LENGTH), (Rerank("one", length=8), 8), (Rerank("one", length=99), LENGTH)):
        contexts = step.apply(before, context)
        (note,) = contexts.notes
        assert note.endswith(f"pairs of a query and a passage truncated to the model's {length} tokens (1)")
        scores = dict(contexts.frame.select("passage", "score").iter_rows())
        expected = plain_score(folders / "one", "the mill", long, length)
        assert scores["a"] == pytest.approx(expected, rel=1e-5, abs=1e-5)
        cross_encoder._shared_scorer.cache_clear()
        assert step.apply(before, context).notes == (note,)  # of scores from the cache


def test_models_that_are_none(folders: Path, tmp_path: Path) -> None:
    """Told before anything runs, by what the folder says: the library would put a layer of random numbers on top."""
    context = world(TEXTS, QUERIES, None, folder=folders)
    with pytest.raises(ModelError, match="has 3 labels"):
        Rerank("three").apply(unscored_contexts([("q", ["a", "b"])]), context)
    (tmp_path / "empty").mkdir()
    encoder = write_encoder(tmp_path / "encoder")
    plain = write_encoder(tmp_path / "plain")
    (plain / "modules.json").unlink()
    for model, words in (
        ("./nowhere", "nowhere"),
        ("nobody/nothing", "local cache"),
        (tmp_path / "empty", "contains no model"),
        (encoder, "it is a SentenceTransformer"),
        (plain, "it is a BertModel"),
    ):
        with pytest.raises(InputError, match=f"s: .*{words}"):
            retrieve({"s": f'bm25 >> rerank("{model}")'}, context)
    for wrong in ("rerank", 'rerank("bi-encoder:x")'):
        with pytest.raises(InputError):
            Pipeline.of(f"bm25 >> {wrong}")


def test_weights_that_are_not_there_are_not_made_up(folders: Path, tmp_path: Path) -> None:
    from safetensors.torch import load_file, save_file

    shutil.copytree(folders / "one", tmp_path / "cross")
    write_encoder(tmp_path / "encoder")  # it lacks only a pooler, which nothing uses
    context = world(TEXTS, QUERIES, None, folder=tmp_path, cache=tmp_path / "cache")
    retrieve({"s": "dense('st:./encoder')"}, context)
    for folder, lost, written in (
        ("cross", "classifier.weight", "bm25 >> rerank('./cross')"),
        ("encoder", "encoder.layer.0.output.dense.weight", "dense('st:./encoder')"),
    ):
        path = tmp_path / folder / "model.safetensors"
        save_file({name: each for name, each in load_file(path).items() if name != lost}, path, {"format": "pt"})
        with pytest.raises(ModelError, match=f"its weights lack {lost}, which would be random numbers"):
            retrieve({"s": written}, context)


def test_in_a_pipeline(folders: Path, tmp_path: Path) -> None:
    context = world(TEXTS, QUERIES, None, folder=folders, cache=tmp_path / "cache")
    written = 'bm25 >> rerank("cross-encoder:one") >> mmr(0.7) % 2'
    assert str(Pipeline.of(written)) == written
    systems = {"a": written, "b": "bm25 >> rerank(two) % 1"}
    contexts = retrieve(systems, context)
    assert [len(each) for each in passages(contexts, "a").values()] == [2, 1]
    assert retrieve(systems, context) == contexts


def test_pairs_are_scored_once(folders: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By several lists of a run, and by later runs."""
    scored: list[tuple[str, str]] = []
    real = PairScorer.score

    def watched(self: PairScorer, pairs: Any) -> Any:
        scored.extend(pairs)
        return real(self, pairs)

    monkeypatch.setattr(PairScorer, "score", watched)
    context = world(TEXTS, QUERIES, None, folder=folders, cache=tmp_path)
    lists = [unscored_contexts([("q", list(order))]) for order in ("abc", "cdba")]
    contexts = [Rerank("one").apply(each, context) for each in lists]
    assert len(scored) == len(set(scored)) == 4
    cross_encoder._shared_scorer.cache_clear()
    assert [Rerank("one").apply(each, context) for each in lists] == contexts
    assert len(scored) == 4
    cross_encoder._shared_scorer.cache_clear()
    Rerank("one").apply(unscored_contexts([("q", ["b"]), ("r", ["c"])]), context)  # a shallower list, one more query
    assert scored[4:] == [(QUERIES["r"], TEXTS["c"])]


def test_sources_are_the_files_of_the_model(folders: Path, tmp_path: Path) -> None:
    context = world(TEXTS, QUERIES, None, folder=folders)
    assert Rerank("one").sources(context) == Rerank("cross-encoder:one", length=8).sources(context)
    assert Rerank("one").sources(context) != Rerank("two").sources(context)
    config = cross(tmp_path / "mine") / "config.json"
    before = Rerank("mine").sources(world(TEXTS, QUERIES, None, folder=tmp_path))
    config.write_text(json.dumps(json.loads(config.read_text()) | {"note": 1}))
    assert Rerank("mine").sources(world(TEXTS, QUERIES, None, folder=tmp_path)) != before


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -float("inf")])
def test_scores_that_are_no_numbers(
    folders: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, value: float
) -> None:
    """Such a passage was not judged: it stands behind the others, is noted, and its score is not kept."""
    context = world(TEXTS, QUERIES, None, folder=folders, cache=tmp_path)
    before = unscored_contexts([("q", ["a", "b", "c", "d"])])
    scores = {TEXTS["a"]: 1.0, TEXTS["b"]: value, TEXTS["c"]: 3.0, TEXTS["d"]: 2.0}
    monkeypatch.setattr(PairScorer, "score", lambda self, pairs: [PairScore(scores[text]) for _, text in pairs])
    contexts = Rerank("one").apply(before, context)
    assert contexts.frame["passage"].to_list() == ["c", "d", "a", "b"]
    assert contexts.frame["score"].to_list() == [3.0, 2.0, 1.0, None]
    (note,) = contexts.notes
    assert "1 of 4 passages could not be judged and stand behind the others in the order before (not-finite 1)" in note
    for cleared in (False, True):
        if cleared:
            cross_encoder._shared_scorer.cache_clear()
        assert Rerank("one").apply(before, context) == contexts
    scores[TEXTS["b"]] = 9.0  # it is scored anew
    assert Rerank("one").apply(before, context).frame["passage"].to_list() == ["b", "c", "d", "a"]
    healthy = dict(scores)
    scores |= dict.fromkeys(scores, value)
    cross_encoder._shared_scorer.cache_clear()
    context = world(TEXTS, QUERIES, None, folder=folders, cache=tmp_path / "other")
    with pytest.raises(ModelError, match="none of 4 passages could be judged: not-finite 4"):
        Rerank("one").apply(before, context)
    scores |= healthy
    assert Rerank("one").apply(before, context).frame["passage"].to_list() == ["b", "c", "d", "a"]
