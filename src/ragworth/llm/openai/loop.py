"""An event loop in a separate thread.

It works everywhere: in scripts, from many threads at once, and in Jupyter, where a loop is already running.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import CancelledError
from contextlib import suppress
from typing import Any, TypeVar

from ragworth.core.errors import ModelError
from ragworth.llm.contract import Failure
from ragworth.llm.openai.errors import EndpointError

T = TypeVar("T")


class EventLoopThread:
    """Starts with the first work."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._closed = False

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Run ``work`` and wait for it. An interrupt of the waiting thread stops the work too."""
        try:
            future = asyncio.run_coroutine_threadsafe(work, self._running())
        except BaseException:  # it was closed, or no thread can be started
            work.close()
            raise
        try:
            return future.result()
        except CancelledError:
            raise EndpointError(Failure("stopped", "the model was closed before the reply came")) from None
        except BaseException:
            future.cancel()
            raise

    def _running(self) -> asyncio.AbstractEventLoop:
        with self._lock:
            if self._closed:
                raise ModelError("the model was closed during a call")
            if self._loop is None:
                loop = asyncio.new_event_loop()
                thread = threading.Thread(target=_run_loop, args=(loop,), name="ragworth-endpoint", daemon=True)
                try:
                    thread.start()
                except BaseException:  # a loop that nobody runs would never end what close() waits for
                    loop.close()
                    raise
                self._loop, self._thread = loop, thread
            return self._loop

    def close(self, last: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Cancel all work, run ``last`` and end the thread. Closing twice is harmless."""
        with self._lock:
            self._closed = True
            loop, thread, self._loop, self._thread = self._loop, self._thread, None, None
        if loop is None or thread is None:
            return
        if thread is threading.current_thread():  # the garbage collector ran here, and a thread can't wait for itself
            loop.create_task(_shut_down(last)).add_done_callback(lambda _: loop.stop())
            return
        asyncio.run_coroutine_threadsafe(_shut_down(last), loop).result()
        loop.call_soon_threadsafe(loop.stop)
        thread.join()


async def _shut_down(last: Callable[[], Coroutine[Any, Any, None]]) -> None:
    others = asyncio.all_tasks() - {asyncio.current_task()}
    for task in others:
        task.cancel()
    await asyncio.gather(*others, return_exceptions=True)
    await last()
    loop = asyncio.get_running_loop()
    await loop.shutdown_asyncgens()
    with suppress(RuntimeError):  # no thread can be started during interpreter shutdown
        await loop.shutdown_default_executor()


def _run_loop(loop: asyncio.AbstractEventLoop) -> None:
    """Run the loop until it is stopped."""
    try:
        loop.run_forever()
    finally:
        loop.close()
