"""Collect the calls that jobs would make, instead of making them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Protocol

from ragworth.llm.contract import Card, Request


class RequestSink(Protocol):
    """Takes requests that have no answer yet."""

    def add(self, card: Card, missing: Mapping[bytes, Request]) -> None:
        """Take requests to a model, by key. A key may come again."""
        ...


class _Capture:
    """What all jobs of this process write to, whichever thread they run in."""

    sink: RequestSink | None = None


@contextmanager
def capture_requests(sink: RequestSink) -> Iterator[None]:
    """While this is open, jobs ask no model: what they would ask goes to ``sink``, with the outcome ``not-asked``."""
    _Capture.sink = sink
    try:
        yield
    finally:
        _Capture.sink = None


def current_sink() -> RequestSink | None:
    return _Capture.sink
