"""Many calls of which a fifth go wrong: an end, a value or a reason for each, and no more memory for it."""

from __future__ import annotations

import os
import tracemalloc
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from ragworth.calls import job, maintenance
from ragworth.calls.job import Job
from ragworth.calls.store import Store
from ragworth.llm.contract import Chosen, Failure, Request
from ragworth.llm.scripted import Faults, Scripted
from tests.calls.samples import question, share

LONG = bool(os.environ.get("RAGWORTH_SOAK"))
CALLS = 100_000 if LONG else 3_000
FLAT = 100_000 if LONG else 6_000

FAULTS = Faults(
    error=0.05, rate_limit=0.05, hang=0.02, truncated=0.03, malformed=0.03, no_logprobs=0.02, hang_seconds=0.003
)
REASONS = {"server-error", "rate-limited", "timed-out", "malformed", "no-logprobs"}


def asked(number: int) -> Iterator[Request]:
    return (question(i) for i in range(number))


@pytest.mark.slow
@pytest.mark.parametrize("concurrency", [1, 8])
def test_a_fifth_goes_wrong_and_all_is_well_in_the_end(concurrency: int, tmp_path: Path) -> None:
    model = Scripted(share, faults=FAULTS, batch=16, concurrency=concurrency)
    with Store(tmp_path / "c.sqlite") as kept:
        work = Job(model, kept)
        found = list(work.run(asked(CALLS)))
        assert len(found) == CALLS
        reasons = Counter(one.reason for one in found if isinstance(one, Failure))
        assert set(reasons) == REASONS
        assert 0.16 < sum(reasons.values()) / CALLS < 0.24
        assert all(isinstance(one, Chosen | Failure) for one in found)
        assert (
            sum(trouble.calls for trouble in maintenance.failed_calls(kept))
            == sum(reasons.values())
            == work.tally.failed
        )
        reruns = 0
        while any(isinstance(one, Failure) for one in found):
            reruns += 1
            before = model.calls
            missing = sum(isinstance(one, Failure) for one in found)
            found = list(Job(model, kept).run(asked(CALLS)))
            assert model.calls - before == missing
            assert reruns < 15
        assert [one.probabilities[0] for one in found if isinstance(one, Chosen)] == [
            i % 1000 / 1000 for i in range(CALLS)
        ]
        assert maintenance.failed_calls(kept) == []
        assert maintenance.verify(kept) == maintenance.VerificationResult(CALLS, 0, [])


@pytest.mark.slow
def test_memory_does_not_grow_with_the_number_of_calls(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(job, "REQUEST_WINDOW", 512)
    model = Scripted(share, batch=512)
    sizes: list[int] = []
    with Store(tmp_path / "c.sqlite") as kept:
        running = Job(model, kept).run(asked(FLAT))
        tracemalloc.start()
        try:
            for number, _ in enumerate(running, 1):
                if number in (FLAT // 3, FLAT):
                    sizes.append(tracemalloc.get_traced_memory()[0])
                    if number < FLAT:
                        tracemalloc.reset_peak()
            _, peak = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
    assert model.calls == FLAT
    # What is kept of each of the calls in between would be half a kilobyte at the least.
    assert sizes[1] - sizes[0] < 100 * (FLAT - FLAT // 3)
    assert peak - sizes[0] < 5_000_000
