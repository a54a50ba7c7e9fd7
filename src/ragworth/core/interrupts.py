"""Handle Ctrl-C on the command line from the start: no traceback, and exit code 130.

`handle` raises KeyboardInterrupt so that work can be cleaned up. It ends the process at once if Ctrl-C is pressed
again, or during an import, where a library may swallow the exception or turn it into another one. Jobs handle Ctrl-C
themselves while calls are under way, so no paid call is lost.

Imports only modules that Python has already loaded.
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
"""The shell convention: 128 plus the signal number."""

_pressed = False


def install() -> None:
    """Handle Ctrl-C, unless the parent process has it ignored (as ``nohup`` and ``&`` do)."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, handle)
        # Python restores the default during shutdown, after the functions registered here.
        atexit.register(signal.signal, signal.SIGINT, signal.SIG_IGN)


def handle(number: int, frame: FrameType | None) -> None:
    """Raise KeyboardInterrupt, or exit at once."""
    global _pressed
    if _pressed or _is_importing(frame):
        exit_now()
    _pressed = True
    raise KeyboardInterrupt


def end_at_once() -> None:
    """Let the next Ctrl-C end the process: all work is done, and nothing is left to clean up."""
    global _pressed
    _pressed = True


def exit_now(code: int = EXIT_CODE) -> None:
    """Exit now, whatever the threads are doing."""
    try:
        sys.stdout.flush()
        os.write(2, b"\nragworth: interrupted\n")
    except (OSError, ValueError, RuntimeError, AttributeError):  # nobody is reading any more
        pass
    os._exit(code)


def _is_importing(frame: FrameType | None) -> bool:
    while frame is not None:
        if frame.f_code.co_filename.startswith("<frozen importlib"):
            return True
        frame = frame.f_back
    return False
