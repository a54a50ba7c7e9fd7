"""Distinct keys of a job are counted exactly, whatever the order and size of the windows."""

from __future__ import annotations

import random

import pytest

from ragworth.calls import seen_keys
from ragworth.calls.seen_keys import SeenKeys


@pytest.mark.parametrize("most", [4, 1 << 20])
def test_keys_are_new_once(monkeypatch: pytest.MonkeyPatch, most: int) -> None:
    monkeypatch.setattr(seen_keys, "MAX_RUN", most)
    draw = random.Random(0)
    keys = [number.to_bytes(8, "big") + b"the rest" for number in range(60)]
    counted, known = SeenKeys(), set[bytes]()
    for _ in range(40):
        window = draw.sample(keys, draw.randrange(8))
        assert counted.add(window) == len(set(window) - known)
        known.update(window)
