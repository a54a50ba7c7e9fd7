"""Cross-encoders and monoT5: tiny ones made here, saved to a folder, and held against the library used directly."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from ragworth.core.errors import InputError, ModelError
from ragworth.retrieval import Pipeline, retrieve
from ragworth.retrieval.contract import unscored_contexts
from ragworth.retrieval.rerankers import score_cache
from ragworth.retrieval.rerankers.pair_scorers import CrossEncoder, model_folder, open_scorer
from ragworth.retrieval.rerankers.score_cache import TextPair, cached_scores
from ragworth.retrieval.steps import cross_encoder
from ragworth.retrieval.steps.cross_encoder import Rerank
from tests.retrieval.samples import passages, world

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")
tokenizers = pytest.importorskip("tokenizers")

pytestmark = pytest.mark.torch

WORDS = ["mill", "built", "the", "who", "ann", "bread", "corn", "old", "twice", "true", "false", "query", "document"]
TEXTS = {"a": "the mill", "b": "ann built the old mill twice", "c": "bread corn", "d": "old", "e": ""}
QUERIES = {"q": "who built the mill", "r": "bread"}


def tokenizer(*, pairs: bool) -> Any:
    """Words, each a token; pairs with what BERT has around them, else with an end."""
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]"]
    vocabulary = {word: number for number, word in enumerate([*special, *WORDS, "relevant"])}
    made = tokenizers.Tokenizer(tokenizers.models.WordLevel(vocabulary, unk_token="[UNK]"))
    made.normalizer = tokenizers.normalizers.Lowercase()
    made.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    form = {"single": "[CLS] $A [SEP]", "pair": "[CLS] $A [SEP] $B:1 [SEP]:1"} if pairs else {"single": "$A [SEP]"}
    made.post_processor = tokenizers.processors.TemplateProcessing(
        **form, special_tokens=[("[CLS]", vocabulary["[CLS]"]), ("[SEP]", vocabulary["[SEP]"])]
    )
    return transformers.PreTrainedTokenizerFast(
        tokenizer_object=made,
        unk_token="[UNK]",
        pad_token="[PAD]",
        cls_token="[CLS]",
        sep_token="[SEP]",
        eos_token="[SEP]",
        model_max_length=16 if pairs else 10**30,
    )


def cross(folder: Path, labels: int = 1) -> Path:
    torch.manual_seed(labels)
    config = transformers.BertConfig(
        vocab_size=32,
        hidden_size=16,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=32,
        max_position_embeddings=24,
        num_labels=labels,
        initializer_range=0.5,
    )
    transformers.BertForSequenceClassification(config).save_pretrained(folder)
    tokenizer(pairs=True).save_pretrained(folder)
    return folder


def t5(folder: Path) -> Path:
    torch.manual_seed(5)
    config = transformers.T5Config(
        vocab_size=32,
        d_model=16,
        d_kv=8,
        d_ff=32,
        num_layers=2,
        num_heads=2,
        decoder_start_token_id=0,
        pad_token_id=0,
        eos_token_id=3,
        initializer_factor=2.0,
    )
    transformers.T5ForConditionalGeneration(config).save_pretrained(folder)
    tokenizer(pairs=False).save_pretrained(folder)
    return folder


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> Path:
    base = tmp_path_factory.mktemp("models")
    cross(base / "one")
    cross(base / "two", 2)
    cross(base / "three", 3)
    t5(base / "t5")
    return base


@pytest.fixture(autouse=True)
def afresh() -> None:
    cross_encoder._shared_scorer.cache_clear()


def plain_cross(folder: Path, query: str, passage: str, length: int = 16) -> float:
    """One pair alone, by the library itself."""
    model = transformers.AutoModelForSequenceClassification.from_pretrained(folder).eval()
    words = transformers.AutoTokenizer.from_pretrained(folder)
    with torch.no_grad():
        given = words(query, passage, truncation=True, max_length=length, return_tensors="pt")
        logits = model(**given).logits[0].double()
    return float(logits[0] if len(logits) == 1 else logits[1] - logits[0])


def plain_t5(folder: Path, text: str) -> float:
    model = transformers.AutoModelForSeq2SeqLM.from_pretrained(folder).eval()
    words = transformers.AutoTokenizer.from_pretrained(folder)
    with torch.no_grad():
        given = words(text, return_tensors="pt")
        ids = given["input_ids"]
        logits = model(input_ids=ids, decoder_input_ids=torch.zeros(1, 1, dtype=torch.long)).logits[0, 0].double()
    true, false = (words(word, add_special_tokens=False)["input_ids"][0] for word in ("true", "false"))
    return float(torch.log_softmax(logits[[true, false]], dim=0)[0])


PAIRS = [TextPair(query, text) for query in QUERIES.values() for text in TEXTS.values() if text]


@pytest.mark.parametrize("name", ["one", "two"])
def test_cross_encoders_score_as_the_library_does(folders: Path, name: str) -> None:
    found = open_scorer(folders / name).score(PAIRS)
    assert found == pytest.approx([plain_cross(folders / name, *pair) for pair in PAIRS], rel=1e-5, abs=1e-5)
    assert len(set(found)) == len(found)


def test_monot5_scores_as_the_library_does(folders: Path) -> None:
    found = open_scorer(folders / "t5").score(PAIRS)
    wanted = [plain_t5(folders / "t5", f"Query: {query} Document: {text} Relevant:") for query, text in PAIRS]
    assert found == pytest.approx(wanted, rel=1e-5, abs=1e-5)
    assert all(value < 0 for value in found)
    assert len(set(found)) == len(found)


@pytest.mark.parametrize("step", [Rerank("cross-encoder:one"), Rerank("two"), Rerank("t5")], ids=str)
def test_passages_come_by_score(folders: Path, step: Any) -> None:
    context = world(TEXTS, QUERIES, None, folder=folders)
    before = unscored_contexts([("q", list("abcde")), ("r", ["d", "c"])])
    made = step.apply(before, context)
    scorer = step._scorer(context)
    for query in QUERIES:
        rows = made.frame.filter(query=query).sort("rank")
        scores = rows["score"].drop_nulls().to_list()
        assert scores == sorted(scores, reverse=True)
        shown = [each for each in rows["passage"] if TEXTS[each]]
        assert scores == pytest.approx(
            scorer.score([TextPair(QUERIES[query], TEXTS[each]) for each in shown]), rel=1e-5, abs=1e-5
        )
    assert made.frame.filter(query="q")["passage"][-1] == "e"  # there is nothing to read in it
    assert "1 passage without a text" in made.notes[0]
    from dataclasses import replace

    head = replace(step, depth=1).apply(before, context)
    assert head.frame.filter(query="q")["passage"].to_list() == list("abcde")


def test_long_passages_are_cut_and_counted(folders: Path) -> None:
    long = "bread " * 40
    context = world({"a": long, "b": "old mill"}, {"q": "the mill"}, None, folder=folders)
    before = unscored_contexts([("q", ["a", "b"])])
    made = Rerank("one").apply(before, context)
    (note,) = made.notes
    assert note.endswith("pairs of a query and a passage truncated to the model's 16 tokens (1)")
    scores = dict(made.frame.select("passage", "score").iter_rows())
    assert scores["a"] == pytest.approx(plain_cross(folders / "one", "the mill", long), rel=1e-5, abs=1e-5)
    short = dict(Rerank("one", length=8).apply(before, context).frame.select("passage", "score").iter_rows())
    assert short["a"] == pytest.approx(plain_cross(folders / "one", "the mill", long, 8), rel=1e-5, abs=1e-5)
    made = Rerank("t5", length=16).apply(before, context)
    assert made.notes[0].endswith("(1)")
    # Query : the mill Document : … Relevant : and the end take 9 of 16.
    scores = dict(made.frame.select("passage", "score").iter_rows())
    text = f"Query: the mill Document: {'bread ' * 7}Relevant:"
    assert scores["a"] == pytest.approx(plain_t5(folders / "t5", text), rel=1e-5, abs=1e-5)
    with pytest.raises(ModelError, match="the query alone"):
        Rerank("t5", length=16).apply(before, world({"a": "x", "b": "y"}, {"q": long}, None, folder=folders))
    with pytest.raises(ModelError, match="length is 17"):
        Rerank("one", length=17).apply(before, context)


def test_models_that_are_none(folders: Path, tmp_path: Path) -> None:
    context = world(TEXTS, QUERIES, None, folder=folders)
    before = unscored_contexts([("q", ["a", "b"])])
    with pytest.raises(ModelError, match="has 3 labels"):
        Rerank("three").apply(before, context)
    words = shutil.copytree(folders / "t5", tmp_path / "t5") / "tokenizer.json"
    words.write_text(words.read_text(encoding="utf-8").replace('"true"', '"yes"'), encoding="utf-8")
    with pytest.raises(ModelError, match="'true' and 'false' are not single tokens"):
        Rerank(str(words.parent)).apply(before, context)
    with pytest.raises(InputError, match=r"s: .*nowhere"):
        retrieve({"s": "bm25 >> rerank('./nowhere')"}, context)
    with pytest.raises(InputError, match=r"s: .*not in the local cache"):
        retrieve({"s": "bm25 >> rerank('nobody/nothing')"}, context)
    (tmp_path / "empty").mkdir()
    with pytest.raises(ModelError, match=r"no config\.json"):
        model_folder("empty", tmp_path)
    for wrong in ("rerank", 'rerank("bi-encoder:x")'):
        with pytest.raises(InputError):
            Pipeline.of(f"bm25 >> {wrong}")


def test_models_that_were_made_for_something_else(folders: Path, tmp_path: Path) -> None:
    """Told before anything runs, by what the folder says, with where it belongs."""
    encoder = shutil.copytree(folders / "one", tmp_path / "encoder")
    transformers.BertModel(transformers.AutoConfig.from_pretrained(encoder)).save_pretrained(encoder)
    context = world(TEXTS, QUERIES, None, folder=folders)
    words = r"architecture BertModel[^$]*dense\(\"st:.*encoder\"\) is for encoders of texts"
    with pytest.raises(InputError, match=f"s: .*{words}"):
        retrieve({"s": f'bm25 >> rerank("{encoder}")'}, context)


@pytest.mark.parametrize("step", [Rerank("encoder"), Rerank("t5")], ids=str)
def test_weights_that_are_not_there_are_not_made_up(folders: Path, tmp_path: Path, step: Any) -> None:
    from safetensors.torch import load_file, save_file

    shutil.copytree(folders / "one", tmp_path / "encoder")
    shutil.copytree(folders / "t5", tmp_path / "t5")
    lost = "classifier.weight" if step.model == "encoder" else "encoder.final_layer_norm.weight"
    path = tmp_path / step.model / "model.safetensors"
    save_file({name: each for name, each in load_file(path).items() if name != lost}, path, {"format": "pt"})
    with pytest.raises(ModelError, match=f"its weights lack {lost}, which would be random numbers"):
        step.apply(unscored_contexts([("q", ["a", "b"])]), world(TEXTS, QUERIES, None, folder=tmp_path))


def test_in_a_pipeline(folders: Path, tmp_path: Path) -> None:
    context = world(TEXTS, QUERIES, None, folder=folders, cache=tmp_path / "cache")
    written = 'bm25 >> rerank("cross-encoder:one") >> mmr(0.7) % 2'
    assert str(Pipeline.of(written)) == written
    made = retrieve({"a": written, "b": "bm25 >> rerank(t5) % 1"}, context)
    assert [len(each) for each in passages(made, "a").values()] == [2, 1]
    assert retrieve({"a": written, "b": "bm25 >> rerank(t5) % 1"}, context) == made
    assert len(list((tmp_path / "cache").glob("*.scores"))) == 2


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
    given = {TEXTS["a"]: 1.0, TEXTS["b"]: value, TEXTS["c"]: 3.0, TEXTS["d"]: 2.0}
    monkeypatch.setattr(CrossEncoder, "score", lambda self, pairs: [given[pair.passage] for pair in pairs])
    made = Rerank("one").apply(before, context)
    assert made.frame["passage"].to_list() == ["c", "d", "a", "b"]
    assert made.frame["score"].to_list() == [3.0, 2.0, 1.0, None]
    (note,) = made.notes
    assert "1 of 4 passages could not be judged and stand behind the others in the order before (not-finite 1)" in note
    (path,) = tmp_path.glob("*.scores")
    assert len(path.read_text().split()) == 3 * 3
    given[TEXTS["b"]] = 9.0  # it is scored anew
    assert Rerank("one").apply(before, context).frame["passage"].to_list() == ["b", "c", "d", "a"]
    given |= dict.fromkeys(given, value)
    with pytest.raises(ModelError, match="none of 4 passages could be judged: not-finite 4"):
        Rerank("one").apply(before, world(TEXTS, QUERIES, None, folder=folders))


# Scores that are kept.


def lengths(pairs: Any) -> list[float]:
    return [float(len(pair.passage)) + 0.1 for pair in pairs]


def test_what_was_scored_is_not_scored_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(score_cache, "BLOCK_SIZE", 2)
    pairs = [TextPair("q", "x" * number) for number in range(1, 8)]
    asked: list[TextPair] = []

    def dying(block: Any) -> list[float]:
        if len(asked) == 4:
            raise KeyboardInterrupt
        asked.extend(block)
        return lengths(block)

    with pytest.raises(KeyboardInterrupt):
        cached_scores(tmp_path, "m", pairs, dying)
    assert len(asked) == 4
    rest: list[TextPair] = []

    def noting(block: Any) -> list[float]:
        rest.extend(block)
        return lengths(block)

    assert cached_scores(tmp_path, "m", [*pairs, *pairs], noting) == lengths([*pairs, *pairs])
    assert sorted([*asked, *rest]) == sorted(pairs)
    # A line that was not written whole, and what is no line at all.
    with (tmp_path / "m.scores").open("a") as stream:
        stream.write(f"{TextPair('q', 'new').key} 12\nnonsense\n{TextPair('q', 'other').key} nan .")
    assert cached_scores(tmp_path, "m", [TextPair("q", "new"), TextPair("q", "other")], noting) == [3.1, 5.1]
    assert rest[-2:] == [TextPair("q", "new"), TextPair("q", "other")]
    assert cached_scores(tmp_path, "m", [TextPair("q", "new")], dying) == [3.1]
    assert cached_scores(None, "m", [TextPair("q", "ab")], lengths) == [2.1]
    assert cached_scores(tmp_path / "m.scores", "m", [TextPair("q", "ab")], lengths) == [2.1]  # a file in the way


def test_a_kept_score_that_was_changed_is_made_again(tmp_path: Path) -> None:
    pair = TextPair("q", "passage")
    assert cached_scores(tmp_path, "m", [pair], lengths) == [7.1]
    path = tmp_path / "m.scores"
    path.write_text(path.read_text().replace("7.1", "9.1"))
    assert cached_scores(tmp_path, "m", [pair], lengths) == [7.1]


def test_pairs_are_told_apart() -> None:
    assert TextPair("ab", "c").key != TextPair("a", "bc").key
    assert TextPair("1 a", "").key != TextPair("1", " a").key
    assert TextPair("\ud800", "x").key
