"""Runs the command line as a process: every way to end has one exit code (docs/exit-codes.md) and no traceback."""

from __future__ import annotations

import errno
import os
import sys
import warnings
from pathlib import Path
from typing import Any

import click

from ragworth.core.errors import InputError, ResourceError, quote_short
from ragworth.core.interrupts import end_at_once
from ragworth.core.resources import Shortage, find_shortage

DISK_FULL = {errno.ENOSPC, getattr(errno, "EDQUOT", errno.ENOSPC)}
"""A disk without room, or without room for this user."""


def start(main: click.Command) -> None:
    """Run the command and exit."""
    # A closed stream gets its file number back, so that no database is opened under it.
    sys.stdout = sys.stdout or Path(os.devnull).open("w", encoding="utf-8")  # noqa: SIM115
    sys.stderr = sys.stderr or Path(os.devnull).open("w", encoding="utf-8")  # noqa: SIM115
    for stream in (sys.stdout, sys.stderr):
        _tolerate_all_letters(stream)
    # Polars goes on without its binary, and fails later in ways that nobody understands.
    warnings.filterwarnings("error", message="Polars binary is missing")
    warnings.formatwarning = _format_warning
    code = 0
    try:
        main(prog_name="ragworth")
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else 0 if end.code is None else 1
    except OSError as error:
        if error.errno not in DISK_FULL:
            raise
        silence(sys.stdout.fileno())
        click.echo(f"ragworth: the output can't be written: {error.strerror}", err=True)
        code = InputError.exit_code
    end_at_once()
    _flush()
    sys.exit(code)


def _format_warning(message: Warning | str, *where: object, **line: object) -> str:
    """A warning without the line of code that it comes from."""
    return f"warning: {message}\n"


def _tolerate_all_letters(stream: Any) -> None:
    """Write UTF-8 to files and pipes; terminals, and those who set another encoding, get ? for what it lacks."""
    if stream.encoding.lower() == "utf-8":
        return
    if stream.isatty() or "PYTHONIOENCODING" in os.environ:
        stream.reconfigure(errors="replace")
    else:
        stream.reconfigure(encoding="utf-8")


def _flush() -> None:
    """Write out what is left, unless nobody reads it: Python would complain at its end."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (OSError, ValueError):
            silence(stream.fileno())


def silence(file: int) -> None:
    """Write to nowhere from now on."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), file)


def is_interrupt(error: BaseException) -> bool:
    """Whether Ctrl-C led to an error, such as the end of a prompt."""
    return isinstance(error, KeyboardInterrupt) or isinstance(error.__context__, KeyboardInterrupt)


ADVICE: dict[Shortage, tuple[str, str]] = {
    "memory": (
        "not enough memory",
        "free some memory, or raise its limit (ulimit -v)",
    ),
    "threads": (
        "the system allows no more threads",
        "set POLARS_MAX_THREADS=1 and OMP_NUM_THREADS=1, or raise the limit (ulimit -u)",
    ),
    "files": (
        "too many files are open",
        "raise the limit (ulimit -n)",
    ),
}
"""What is lacking, and what to do besides lowering options."""

OPTIONS_TO_LOWER: dict[Shortage, dict[str, str]] = {
    "memory": {
        "limit": "--limit",
        "settings": "-O context_length, -O batch_tokens (hf) or -O concurrency (endpoints)",
        "resamples": "--resamples",
        "runs": "the number of runs",
    },
    "threads": {"settings": "-O threads (models on this machine) or -O concurrency (endpoints)"},
    "files": {"settings": "-O concurrency"},
}
"""What may be lowered, by the parameter of the command that it belongs to."""


def resource_error(error: BaseException, command: click.Command | None) -> ResourceError | None:
    """An error that says what the machine ran out of and what to lower; None if it ran out of nothing."""
    short = find_shortage(error)
    if short is None:
        return None
    names = {each.name for each in command.params} if command is not None else set()
    lower = ", ".join(what for name, what in OPTIONS_TO_LOWER[short].items() if name in names)
    found, remedy = ADVICE[short]
    said = f" ({quote_short(error, 100)})" if str(error) else ""
    return ResourceError(f"{found}{said}: {f'lower {lower}, ' if lower else ''}{remedy}; answers so far are kept")
