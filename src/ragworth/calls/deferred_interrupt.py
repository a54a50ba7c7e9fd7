"""Ctrl-C in the middle of a job: noticed where it can be acted on, not wherever it happens to come."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

from ragworth.interrupts import handle


@contextmanager
def defer_interrupt() -> Iterator[Callable[[], bool]]:
    """While inside, a first Ctrl-C is only noted: the value says whether there was one. A second one interrupts.

    Elsewhere than in the main thread, and where a program handles Ctrl-C itself, nothing is changed.
    """
    pressed = threading.Event()
    own = threading.current_thread() is threading.main_thread()
    before = signal.getsignal(signal.SIGINT)
    if not own or before not in (signal.default_int_handler, handle):
        yield pressed.is_set
        return

    def note(number: int, frame: FrameType | None) -> None:
        if pressed.is_set():
            raise KeyboardInterrupt
        pressed.set()

    signal.signal(signal.SIGINT, note)
    try:
        yield pressed.is_set
    finally:
        signal.signal(signal.SIGINT, before)
