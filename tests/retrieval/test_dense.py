"""Dense retrieval: exact search against a plain one, the edges, what is kept, and going on after being killed."""

from __future__ import annotations

import signal
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from polars.testing import assert_frame_equal

from ragworth.core.errors import InputError
from ragworth.retrieval import StepContext, artifacts, retrieve
from ragworth.retrieval.encoders import load_vectors, open_encoder
from ragworth.retrieval.encoders.bert import BertEncoder
from ragworth.retrieval.steps import dense
from ragworth.retrieval.steps.dense import Dense
from tests.retrieval.samples import PASSAGES, passages, world
from tests.retrieval.tiny import write_encoder

pytest.importorskip("onnxruntime")
pytest.importorskip("tokenizers")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A tiny encoder; what is made of it is kept apart from the user's cache."""
    made = tmp_path_factory.mktemp("dense")
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("RAGWORTH_CACHE", str(made / "user"))
        yield write_encoder(made / "tiny", longest=32)


@pytest.fixture
def encoded(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many passages were encoded, each time."""
    calls: list[int] = []
    real = BertEncoder.encode

    def watched(self: BertEncoder, texts: list[str], role: str, prefix: str | None = None) -> object:
        if role == "passage":
            calls.append(len(texts))
        return real(self, texts, role, prefix)  # type: ignore[arg-type]

    monkeypatch.setattr(BertEncoder, "encode", watched)
    return calls


def plain(vectors: np.ndarray, queries: np.ndarray, places: np.ndarray, k: int) -> list[list[int]]:
    """The nearest rows, by sorting all of them."""
    every = [[sum(float(a) * float(b) for a, b in zip(v, q, strict=True)) for v in vectors] for q in queries]
    return [sorted(range(len(row)), key=lambda n: (-row[n], -places[n]))[:k] for row in every]


@given(st.integers(1, 40), st.integers(1, 5), st.integers(1, 45), st.integers(1, 9), st.integers(0, 99), st.booleans())
def test_exact_search_is_that_of_sorting_all(
    n: int, asked: int, k: int, products: int, seed: int, coarse: bool
) -> None:
    """With whole numbers, of which many are equal, and with others; blocks of every size."""
    chance = np.random.default_rng(seed)
    draw = chance.integers(-1, 2, size=(n + asked, 3)) if coarse else chance.normal(size=(n + asked, 3))
    every = draw.astype(np.float32)
    places = chance.permutation(n)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(dense, "PRODUCTS", products)
        found = dense.nearest(every[:n], every[n:], places, k)
    assert [each.rows.tolist() for each in found] == plain(every[:n], every[n:], places, k)
    for each, query in zip(found, every[n:], strict=True):
        expected = every[:n][each.rows].astype(np.float64) @ query.astype(np.float64)
        assert each.scores == pytest.approx(expected, abs=1e-12)


def test_equal_vectors_have_equal_scores_wherever_they_stand() -> None:
    chance = np.random.default_rng(0)
    vectors = chance.normal(size=(3000, 37)).astype(np.float32)
    vectors[::7] = vectors[0]
    (found,) = dense.nearest(vectors, vectors[:1], np.arange(3000), 429)
    assert found.rows.tolist() == list(range(0, 3000, 7))[::-1]
    assert len(set(found.scores)) == 1


def test_scores_are_cosines(folder: Path) -> None:
    made = retrieve({"s": f'dense("tiny:{folder}")'}, world(queries={"q": "Bread is baked at night."}))
    rows = made.frame.select("passage", "score").rows()
    assert rows[0][0] == "p3"
    assert rows[0][1] == pytest.approx(1.0, abs=1e-6)
    model = open_encoder(f"tiny:{folder}")
    query = model.encode(["Bread is baked at night."], "query")[0].astype(float)
    for passage, score in rows:
        assert score == pytest.approx(float(model.encode([PASSAGES[passage]], "passage")[0].astype(float) @ query))


@pytest.mark.parametrize("model", ["tiny", pytest.param("embedded", marks=pytest.mark.model)])
def test_each_query_ranks_its_own_judged_passages(model: str, folder: Path) -> None:
    name = "embedded" if model == "embedded" else f"tiny:{folder}"
    texts = {**PASSAGES, "other": "Bread is baked at night."}
    queries = {"q1": "Bread is baked at night.", "q2": "old corn", "q3": "mill", "blank": " "}
    # Labels of any value make a candidate; p5 is blank, "gone" has no text, and q3 has no labels.
    own: dict[str, dict[str, float]] = {"q1": {"p1": 0, "p3": 1, "p5": 1}, "blank": {"p1": 1}}
    own["q2"] = {"p2": 1, "p1": 0, "gone": 1}
    setting = world(texts, queries, own)
    made = retrieve({"own": f'dense("{name}", among="judged") % 9', "all": f'dense("{name}") % 9'}, setting)
    found, every = passages(made, "own"), passages(made, "all")
    assert found["q1"][0] == "p3" and {query: sorted(some) for query, some in found.items()} == {
        "q1": ["p1", "p3"],
        "q2": ["p1", "p2"],
        "q3": [],
        "blank": [],
    }
    for query in ("q1", "q2"):  # in the order, and with the scores, of a search of the whole collection
        assert found[query] == [each for each in every[query] if each in found[query]]
    scores = {(s, q, p): v for s, q, p, v in made.frame.select("system", "query", "passage", "score").iter_rows()}
    assert all(v == pytest.approx(scores["all", q, p], abs=1e-6) for (s, q, p), v in scores.items() if s == "own")
    with pytest.raises(InputError, match="no relevance labels"):
        retrieve({"s": f'dense("{name}", among="judged")'}, world(texts, queries, None))


def test_the_edges(folder: Path) -> None:
    texts = {**PASSAGES, "blank": " \n\t\u2003", "猫": "猫 が", "a": "old corn", "b": "old corn"}
    queries = {"none": "", "blank": " \u2003", "strange": "zeppelin", "ja": "猫 が", "tie": "old corn", "emoji": "🙂"}
    made = retrieve({"s": f'dense("tiny:{folder}") % 1000'}, world(texts, queries, None))
    found = passages(made, "s")
    assert found["none"] == found["blank"] == []  # no sign, no vector
    assert made.notes == ("s: nothing was retrieved for 2 queries ('blank', 'none')",)
    for query in ("strange", "ja", "tie", "emoji"):  # every text has a vector: all are found that have a sign
        assert sorted(found[query]) == sorted(set(texts) - {"p5", "blank"})
    assert found["ja"][0] == "猫"
    assert found["tie"][:2] == ["b", "a"]  # equal scores by id, descending
    cut = retrieve({"s": f'dense("tiny:{folder}") % 1'}, world(texts, {"tie": "old corn"}, None))
    assert passages(cut, "s") == {"tie": ["b"]}


def test_the_order_of_passages_changes_nothing(folder: Path) -> None:
    system = {"s": f'dense("tiny:{folder}")'}
    made = retrieve(system, world()).frame
    turned = retrieve(system, world(dict(reversed(PASSAGES.items())))).frame
    alone = retrieve(system, world(queries={"q1": "Who built the mill?"})).frame
    # Other texts beside them in a batch may move the last digits of a vector.
    assert_frame_equal(made, turned, check_exact=False, abs_tol=1e-6)
    assert_frame_equal(made.filter(pl.col("query") == "q1"), alone, check_exact=False, abs_tol=1e-6)


def test_prefixes_and_similarity(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plain = retrieve({"s": f'dense("tiny:{folder}")'}, world())
    prefixed = f'dense("tiny:{folder}", query_prefix="query : ", passage_prefix="passage : ")'
    assert retrieve({"s": prefixed}, world()) != plain

    def doubled(self: BertEncoder, texts: list[str], role: str, prefix: str | None = None) -> np.ndarray:
        return 2 * real(self, texts, role, prefix)  # type: ignore[arg-type]

    real = BertEncoder.encode
    monkeypatch.setattr(BertEncoder, "encode", doubled)
    monkeypatch.setattr(BertEncoder, "normalised", False)
    scores = {
        how: retrieve({"s": f'dense("tiny:{folder}", similarity="{how}")'}, world()).frame["score"].to_list()
        for how in ("model", "dot", "cosine")
    }
    assert scores["model"] == scores["dot"] == pytest.approx([4 * each for each in scores["cosine"]])
    assert scores["cosine"] == pytest.approx(plain.frame["score"].to_list())


def test_vectors_are_made_once_and_shared(folder: Path, tmp_path: Path, encoded: list[int]) -> None:
    systems = {"a": f'dense("tiny:{folder}") % 2', "b": f'dense("tiny:{folder}", query_prefix="old ")'}
    first = retrieve(systems, world(cache=tmp_path))
    assert encoded == [4]  # all but the empty one, once for both
    assert retrieve(systems, world(cache=tmp_path)) == first
    assert encoded == [4]
    assert retrieve(systems, world()) == first  # without a cache, for each
    assert encoded == [4, 4, 4]
    assert [path.name.partition("-")[0] for path in tmp_path.iterdir()] == ["vectors"]
    retrieve(systems, world({**PASSAGES, "p6": "corn"}, cache=tmp_path))
    retrieve({"c": f'dense("tiny:{folder}", passage_prefix="old ")'}, world(cache=tmp_path))
    assert encoded[3:] == [5, 4]


WORK = """
import sys, time
import polars as pl
from pathlib import Path
from ragworth.retrieval import artifacts
from ragworth.retrieval.encoders import load_vectors, open_encoder
import tests.retrieval.tiny
artifacts.BLOCK_SIZE = 3
def progress(what, done, total):
    print(done, total, flush=True)
    time.sleep(60 * (done == 9))
texts = pl.Series(["the mill " * n for n in range(1, 21)])
load_vectors(open_encoder("tiny:" + sys.argv[1]), texts, Path(sys.argv[2]), progress=progress)
"""


@pytest.mark.slow
def test_killed_in_the_middle_it_goes_on(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, encoded: list[int]
) -> None:
    command = [sys.executable, "-c", textwrap.dedent(WORK), str(folder), str(tmp_path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        progress = [process.stdout.readline().split() for _ in range(4)]
        process.send_signal(signal.SIGKILL)
    assert progress == [["0", "20"], ["3", "20"], ["6", "20"], ["9", "20"]]  # as it is made
    blocks = sorted(tmp_path.glob("*.blocks/*/vectors.npy"))
    assert len(blocks) == 3
    blocks[0].write_bytes(blocks[0].read_bytes()[:-1])
    monkeypatch.setattr(artifacts, "BLOCK_SIZE", 3)
    texts = pl.Series(["the mill " * n for n in range(1, 21)])
    first = load_vectors(open_encoder(f"tiny:{folder}"), texts, tmp_path)
    assert encoded == [3, 3, 3, 3, 2]  # the damaged block and those that were not there
    assert not list(tmp_path.glob("*.blocks"))
    again = load_vectors(open_encoder(f"tiny:{folder}"), texts, tmp_path)
    assert isinstance(again, np.memmap) and len(encoded) == 5
    assert (again == first).all() and (again == load_vectors(open_encoder(f"tiny:{folder}"), texts)).all()


def test_what_is_missing(folder: Path) -> None:
    with pytest.raises(InputError, match="s: 'nonsense' is not a kind of encoder"):
        retrieve({"s": "dense(nonsense)"}, world())
    with pytest.raises(InputError, match="no texts of passages"):
        retrieve({"s": f'dense("tiny:{folder}")'}, world({}, {"q": "mill"}, None))


def test_relative_folders_and_sources(folder: Path) -> None:
    setting = StepContext.of(world().collection, folder=folder.parent)
    step = Dense("tiny:tiny")
    assert passages(retrieve({"s": step}, setting), "s")["q4"] == []
    (source,) = step.sources(setting)
    assert source == f"tiny:tiny {open_encoder(f'tiny:{folder}').revision}"
