"""Conversations made from written groups: follow-ups, splits, and the files."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from training.reader import written
from training.rewriter import archipelago, conversations
from training.rewriter.followups import ELLIPSIS, NOUN, OMISSION, PRONOUN, elliptic, shortened
from training.rewriter.names import HE, IT, Name, capitalised, mentions
from training.rewriter.rule_candidates import name_candidates

import ragworth
from ragworth.conversations import Message, Turn, turns_of

TUNNEL = Name("Lauen Tunnel", ("Lauen Tunnel", "Lauen"), IT, "tunnel")
BROCK = Name("Adam Brock", ("Adam Brock", "Brock"), HE, None)
KIVARA = Name("Kivara", ("Kivara",), None, None)

GROUP = """\
== the {0} Tunnel
1: The {0} Tunnel is a railway tunnel. It was opened on 4 May 1904 by Adam Brock and is 19 km long.
2: Adam Brock, the engineer, was born in Kolm. He died in 1931.
3: The old {0} road closed in 1950; a ticket for the {0} Tunnel costs 7 crowns.
4: The {1} Bridge was opened in 1911 and is 300 m long.
? When was the {0} Tunnel opened? => 4 May 1904 => 1
? Who opened the {0} Tunnel? => Adam Brock => 1 !2
? How long is the {0} Tunnel? => 19 km => 1
? Where was Adam Brock born? => Kolm => 2
? When did Adam Brock die? => 1931 => 2
? What does a ticket for the {0} Tunnel cost? => 7 crowns => 3
? When was the {1} Bridge opened? => 1911 => 4
? Who painted the {0} Tunnel? => =>
"""


def ways(question: str, name: Name) -> dict[str, str]:
    (mention,) = [each for each in mentions(question, [name]) if each.name is name]
    return {way.kind: way.text for way in shortened(question, mention, pronoun=True, noun=True)}


@pytest.mark.parametrize(
    ("question", "name", "kind", "expected"),
    [
        ("When was the Lauen Tunnel opened?", TUNNEL, PRONOUN, "When was it opened?"),
        ("When was the Lauen Tunnel opened?", TUNNEL, NOUN, "When was the tunnel opened?"),
        ("who designed lauen tunnel", TUNNEL, PRONOUN, "who designed it"),
        ("What was Brock's salary?", BROCK, PRONOUN, "What was his salary?"),
        ("When did Adam Brock die?", BROCK, PRONOUN, "When did he die?"),
        ("Who works in the Lauen Tunnel at night?", TUNNEL, PRONOUN, "Who works there at night?"),
        ("What is the tax on cobalt in Kivara?", KIVARA, OMISSION, "What is the tax on cobalt?"),
        ("How many Kivara miners were paid?", KIVARA, OMISSION, "How many miners were paid?"),
        ("kivara tax rate last year", KIVARA, OMISSION, "tax rate last year"),
    ],
)
def test_a_question_without_its_name(question: str, name: Name, kind: str, expected: str) -> None:
    assert ways(question, name)[kind] == expected


@pytest.mark.parametrize(
    "question",
    [
        "When was the old Lauen Tunnel opened?",  # one of several
        "What became of Kivara?",  # says nothing without its object
        "When did the Lauen Tunnel: Sequel open?",  # a longer name
    ],
)
def test_a_question_that_needs_its_name_is_left_alone(question: str) -> None:
    name = KIVARA if "Kivara" in question else TUNNEL
    assert OMISSION not in ways(question, name)
    assert "Lauen" not in question or ways(question, name) == {}


def test_a_pronoun_of_somebody_else_is_not_added_to() -> None:
    assert PRONOUN not in ways("When did Brock meet her?", BROCK)


@pytest.mark.parametrize(
    ("previous", "question", "expected"),
    [
        ("Who won the Kolm Cup in 2018?", "Who won the Kolm Cup in 2019?", "in 2019"),
        ("how long is the Lauen Tunnel", "how long is the Jubilee Bridge", "the Jubilee Bridge"),
        ("how long is the Lauen Tunnel", "who built the Jubilee Bridge", None),
        ("how long is the tunnel", "how long is the tunnel", None),
    ],
)
def test_what_is_new_in_a_question(previous: str, question: str, expected: str | None) -> None:
    assert elliptic(previous, question) == expected


def test_names_are_runs_of_capitals_without_the_word_that_begins_a_sentence() -> None:
    assert capitalised("Who bought the Tower of Lonsk from Ada Brock?") == ["Tower of Lonsk", "Ada Brock"]
    assert capitalised("When is market day in May?") == []


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    names = ("Lauen", "Orm", "Senn", "Varn", "Tolk", "Brisk", "Hollow", "Quern", "Marl", "Esk", "Dell", "Fenn")
    path = tmp_path_factory.mktemp("written") / "tunnels.txt"
    path.write_text("\n".join(GROUP.format(name, f"{name}by") for name in names), encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def folder(files: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("conversations") / "out"
    conversations.write([files], folder, seed=3)
    return folder


def test_follow_ups_depend_on_the_turns_before_them(files: Path) -> None:
    made = conversations.conversations(conversations.placed([files]), seed=3)
    followups = [
        (turns, place, said)
        for _, turns in made
        for place, (_, said) in enumerate(turns)
        if said.kind in (PRONOUN, NOUN, OMISSION, ELLIPSIS)
    ]
    assert len(followups) > 12
    names_lost = 0
    for turns, place, said in followups:
        assert place > 0
        assert said.text != said.asked.text
        group = turns[place][0].group
        earlier = " ".join(f"{other.asked.text} {other.reply}" for one, other in turns[:place] if one.group is group)
        lost = set(capitalised(said.asked.text)) - set(capitalised(said.text))
        assert all(name in earlier for name in lost), (said, earlier)
        names_lost += len(lost)
    assert names_lost > 0


def test_a_group_is_on_one_side_and_no_question_is_asked_twice(files: Path) -> None:
    groups = conversations.placed([files])
    sides = conversations.parts(groups)
    assert sorted(one.name for side in sides.values() for one in side) == sorted(one.name for one in groups)
    held = {group.topic for group in written.split([one.group for one in groups]).judged_by}
    assert held <= {one.group.topic for one in sides["judge"]}
    asked = [
        (one.name, said.asked.text)
        for side in sides.values()
        for _, turns in conversations.conversations(side, seed=3)
        for one, said in turns
    ]
    assert len(set(asked)) == len(asked)


def test_the_files_are_read_as_conversations_with_labels(folder: Path) -> None:
    loaded = ragworth.load(f"conversations:{folder / 'train' / 'conversations.jsonl'}").collection
    turns = turns_of(loaded)
    assert turns
    assert all(turn.rewrite for turn in turns)
    assert all(len(turn.history) == 2 * (turn.number - 1) for turn in turns)
    labels = ragworth.read_judgments(folder / "train" / "qrels.txt").frame
    relevant = set(labels.filter(labels["value"] > 0)["query"])
    assert relevant == {turn.query for turn in turns}
    passages = (folder / "passages.jsonl").read_text(encoding="utf-8").splitlines()
    known = {json.loads(line)["_id"] for line in passages}
    assert set(labels["passage"]) <= known
    assert len(known) == 48  # of all groups, also those on the other sides


def test_the_same_seed_gives_the_same_files(files: Path, folder: Path, tmp_path: Path) -> None:
    conversations.write([files], tmp_path / "again", seed=3)
    files_of_both = [sorted(path.name for path in each.rglob("*.*")) for each in (folder, tmp_path / "again")]
    assert files_of_both[0] == files_of_both[1] != []
    for file in folder.rglob("*.*"):
        assert (tmp_path / "again" / file.relative_to(folder)).read_bytes() == file.read_bytes()


def test_the_archipelago_asks_every_question_once(tmp_path: Path) -> None:
    assert archipelago.write(tmp_path / "isles") == 50
    turns = turns_of(ragworth.load(f"conversations:{tmp_path / 'isles' / 'conversations.jsonl'}").collection)
    assert len({turn.query for turn in turns}) == 50
    assert all(turn.rewrite == turn.question for turn in turns if turn.number == 1)


def test_candidates_have_names_of_the_history() -> None:
    history = (Message("user", "Who opened the Lauen Tunnel?"), Message("assistant", "Adam Brock."))
    texts = name_candidates(Turn("t", "c", 2, "When was it built?", history))
    assert list(texts.values()) == ["When was Lauen Tunnel built?", "When was Adam Brock built?"]
    assert next(iter(name_candidates(Turn("t", "c", 2, "the year", history)).values())) == "the year Lauen Tunnel"
