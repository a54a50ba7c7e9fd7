"""Defer Ctrl-C during a job until it can be handled."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

from ragworth.core.interrupts import handle


@contextmanager
def defer_interrupt() -> Iterator[Callable[[], bool]]:
    """Note a first Ctrl-C instead of raising; the yielded function returns whether it came. A second one interrupts.

    Does nothing outside the main thread, or if the program handles Ctrl-C itself.
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
