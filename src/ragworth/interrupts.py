"""Ctrl-C on the command line, from the first line on: no traceback, and exit code 130.

`handle` is the handler of the command line. It raises KeyboardInterrupt, so that work can be cleaned up, except inside
an import, where a library may turn it into another error or lose it, and when Ctrl-C is pressed again. There the
process ends at once. Jobs handle Ctrl-C themselves while calls are under way, so nothing that was paid for is lost.

Imports nothing that Python has not loaded anyway.
"""

from __future__ import annotations

import atexit
import os
import signal
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import FrameType

EXIT_CODE = 130
"""As shells have it: 128 and the number of the signal."""

_pressed = False


def install() -> None:
    """Handle Ctrl-C from now on, unless whoever started the process has it ignored (as ``nohup`` and ``&`` do)."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, handle)
        # Python puts the default back while it ends, after everything that is registered here.
        atexit.register(signal.signal, signal.SIGINT, signal.SIG_IGN)


def handle(number: int, frame: FrameType | None) -> None:
    """End at once, or by KeyboardInterrupt."""
    global _pressed
    if _pressed or _is_importing(frame):
        exit_now()
    _pressed = True
    raise KeyboardInterrupt


def end_at_once() -> None:
    """From now on, the first Ctrl-C ends the process: all work is done, and nothing is left to clean up."""
    global _pressed
    _pressed = True


def exit_now(code: int = EXIT_CODE) -> None:
    """End the process now, whatever its threads are doing."""
    try:
        sys.stdout.flush()
        os.write(2, b"\nragworth: interrupted\n")
    except (OSError, ValueError, RuntimeError, AttributeError):  # nobody reads it any more
        pass
    os._exit(code)


def _is_importing(frame: FrameType | None) -> bool:
    while frame is not None:
        if frame.f_code.co_filename.startswith("<frozen importlib"):
            return True
        frame = frame.f_back
    return False
