"""The thread that an endpoint's event loop runs in."""

from __future__ import annotations

import threading

import pytest

from ragworth.llm.openai.loop import EventLoopThread


async def _nothing() -> None:
    pass


def test_closing_never_waits_for_a_thread_that_could_not_be_started(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(self: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    loop = EventLoopThread()
    with monkeypatch.context() as patch:
        patch.setattr(threading.Thread, "start", refuse)
        with pytest.raises(RuntimeError, match="can't start new thread"):
            loop.run(_nothing())
    closing = threading.Thread(target=loop.close, args=(_nothing,), daemon=True)
    closing.start()
    closing.join(10)
    assert not closing.is_alive()


def test_a_thread_that_could_not_be_started_is_started_with_the_next_work(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(self: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    loop = EventLoopThread()
    with monkeypatch.context() as patch, pytest.raises(RuntimeError):
        patch.setattr(threading.Thread, "start", refuse)
        loop.run(_nothing())
    assert loop.run(_nothing()) is None
    loop.close(_nothing)
