"""Candidates: rules, samples and files, merged; the rewriter as a task."""

from __future__ import annotations

import polars as pl
import pytest

from ragworth.calls.job import Job
from ragworth.core.errors import InputError
from ragworth.data.conversations import Message, Turn, cut_messages, recent_messages, turns_of
from ragworth.judging.contract import plan_task, run_task
from ragworth.judging.labels import REFUSED
from ragworth.judging.rewriter import EMPTY_REWRITE, NO_HISTORY, QueryRewriter
from ragworth.llm.contract import Card, Generate, Request
from ragworth.llm.scripted import Scripted
from ragworth.rewriting import candidates as made
from tests.rewriting.conversation_samples import conversations

WRITER = Card("scripted", "writer", abilities=frozenset({"generate"}))


def follow_ups(number: int = 2) -> list[Turn]:
    return made.check_turns(turns_of(conversations(number)))


def test_rules_propose_and_equal_texts_are_merged() -> None:
    turns = follow_ups(1)
    found = made.merge_candidates(turns, made.by_rules(turns, made.RULES, conversations()))
    texts = dict(found.frame.select("candidate", "text").iter_rows())
    assert texts["last"] == "Who built it?"
    assert texts["all"] == "When was the lighthouse built? Who built it?"
    assert texts["human"] == "Who built the lighthouse?"
    assert texts["history-terms"].startswith("Who built it? ")
    assert "lighthouse" in texts["history-terms"]
    assert "first+last" not in texts  # there are only two turns
    assert found.frame.filter(pl.col("candidate") == "all")["source"][0] == "all, first+last"
    assert found.dropped == {made.SAME: 1}


def test_case_and_blanks_dont_make_another_candidate_and_empty_ones_are_dropped() -> None:
    turns = follow_ups(1)
    texts = ("Who built  IT?", "who built it?", " ", "Who built the tower?")
    proposals = [made.Proposal("c1-2", f"p{n}", text, "file") for n, text in enumerate(texts)]
    found = made.merge_candidates(turns, proposals)
    assert found.frame["text"].to_list() == ["Who built IT?", "Who built the tower?"]
    assert found.dropped == {made.SAME: 1, made.EMPTY: 1}


def test_no_candidate_and_no_history_are_errors() -> None:
    turns = follow_ups(1)
    with pytest.raises(InputError, match=r"there is no candidate \(empty: 1\)"):
        made.merge_candidates(turns, [made.Proposal("c1-2", "a", "", "a")])
    with pytest.raises(InputError, match="none of 1 turn has a history"):
        made.check_turns([Turn("q", "c", 1, "Who?")])
    with pytest.raises(InputError, match="there are no conversations"):
        made.check_turns([])
    with pytest.raises(InputError, match="ends with the turn itself"):
        made.check_turns([Turn("q", "c", 2, "Who?", (Message("user", "When?"), Message("user", "Who?")))])


def test_a_model_rewrites_each_turn_once_and_failures_have_a_status() -> None:
    said = {
        "lighthouse": "Who built the lighthouse?\nmore",
        "harbour": "  ",
        "windmill": "I'm sorry, I can't help with that.",
    }

    def reply(request: Request) -> str:
        assert isinstance(request, Generate)
        text = request.prompt.messages[-1].content
        return next(answer for name, answer in said.items() if name in text)

    turns = follow_ups(3)
    model = Scripted(reply)
    with Job(model) as job:
        rewriter = QueryRewriter(job.card)
        assert plan_task(rewriter, turns, job).plan.distinct == 3
        frame = run_task(rewriter, [*turns, Turn("q", "c", 1, "Who?")], job).frame
        assert job.tally.calls == 3  # nothing is asked about the turn without a history
    assert frame["status"].to_list() == ["ok", EMPTY_REWRITE, REFUSED, NO_HISTORY]
    assert frame["text"].to_list() == ["Who built the lighthouse?", None, None, None]


def test_a_long_history_is_cut_from_the_oldest_message_with_a_note() -> None:
    words = " ".join(["word"] * 10_000)
    history = (Message("user", words), Message("assistant", "Short."), Message("user", "And?"))
    turn = Turn("q", "c", 3, "Why?", history)
    assert recent_messages(history, 100) == history[1:]
    assert recent_messages(history, 0) == ()
    assert recent_messages(history, 10**6) == history
    assert [cut_messages(history, room) for room in (100, 0, 10**6)] == [1, 3, 0]
    with Job(Scripted(lambda request: "Why is it short?")) as job:
        rewriter = QueryRewriter(job.card, history=100)
        assert words not in rewriter.request(turn).prompt.messages[-1].content
        result = run_task(rewriter, [turn], job)
    assert result.frame["cut_messages"].to_list() == [1]
    assert any("1 message left out" in note for note in result.notes)


def test_several_greedy_samples_are_refused() -> None:
    with pytest.raises(InputError, match="3 greedy rewrites"):
        QueryRewriter(WRITER, samples=3)
