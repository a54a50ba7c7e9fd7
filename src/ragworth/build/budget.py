"""A build whose budget is spent ends early: nothing is concluded from half of a stage."""

from __future__ import annotations

from ragworth.calls.job import Job
from ragworth.core.errors import JobStopped, format_count


def stop_if_spent(*jobs: Job | None) -> None:
    """Raise `JobStopped` if the budget of a job is spent. Its calls are in the store."""
    for job in jobs:
        if job is not None and job.stopped:
            raise JobStopped(
                f"the budget of {job.stopped} is spent; {format_count(job.tally.not_asked, 'call')} left over\n"
                "  to do: run the same again to continue"
            )
