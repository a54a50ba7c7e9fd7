"""Run chat templates, which are programs that come with a model.

Jinja's sandbox keeps a template from reaching anything, but not from running for hours or filling the memory. Nothing
inside a process can stop that for certain, so an unknown template runs in another process, which is ended when a chat
takes too long. Starting it takes some tenths of a second, and every chat about 0.2 ms more than in this process.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import weakref
from collections.abc import Callable, Mapping
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from typing import Any, TypeAlias

from ragworth.errors import MissingExtraError, ModelError, quote_short
from ragworth.llm.local import template_worker

RenderChat: TypeAlias = Callable[[list[dict[str, str]]], str]
"""Turns messages, each with a role and content, into the text that the model reads."""

RENDER_SECONDS = 10.0
"""Time limit for rendering a chat and for compiling a template; usual ones need a millisecond."""

START_SECONDS = 60.0
"""Time limit for starting the process; machines can be busy."""

PASSED_VARIABLES = ("SYSTEMROOT", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH")
"""Variables that Python may need to start: some installations keep its library in a separate folder."""

MAX_TEMPLATE_LENGTH = 1 << 20
"""Maximum characters of a template; the longest known have some 30,000."""


class TemplateError(ModelError):
    """The template raised an error for these messages; many do for a system turn."""


def load_chat_template(source: str, facts: Mapping[str, Any], *, known: bool = False) -> RenderChat:
    """Load a Jinja chat template that comes with a model.

    Parameters
    ----------
    facts: what a template may refer to besides the messages, such as ``bos_token``.
    known: the template ships with ragworth and may run in this process.
    """
    if find_spec("jinja2") is None:
        raise MissingExtraError("jinja2", "embedded", "a model with a chat template")
    if len(source) > MAX_TEMPLATE_LENGTH:
        raise ModelError(
            f"the model's chat template has {len(source):,} characters", expected=f"up to {MAX_TEMPLATE_LENGTH:,}"
        )
    if not known:
        return _TemplateProcess(source, facts)
    render = template_worker.compile_template(source, facts)

    def here(messages: list[dict[str, str]]) -> str:
        try:
            return render(messages)
        except Exception as error:
            raise _template_error(str(error)) from error

    return here


def _template_error(why: str) -> TemplateError:
    return TemplateError(f"the model's chat template refuses a chat: {quote_short(why, 200)}")


class _TemplateProcess:
    """A template in another process."""

    def __init__(self, source: str, facts: Mapping[str, Any]) -> None:
        self._begin = {"source": source, "facts": dict(facts)}
        self._lock = threading.Lock()
        self._process: subprocess.Popen[str] | None = None
        self._broken = ""
        with self._lock:
            self._start()

    def __call__(self, messages: list[dict[str, str]]) -> str:
        with self._lock:
            if self._broken:
                raise ModelError(self._broken, remedy=REMEDY)
            if self._process is None:
                self._start()
            answer = self._ask(messages, RENDER_SECONDS)
        if "error" in answer:
            raise _template_error(answer["error"])
        return answer["text"]

    def _start(self) -> None:
        folder = Path(next(iter(find_spec("jinja2").submodule_search_locations))).parent  # type: ignore[union-attr, arg-type]
        # Pass only the variables that Python itself may need to start, because others may be secret.
        variables = {name: os.environ[name] for name in PASSED_VARIABLES if name in os.environ}
        try:
            self._process = subprocess.Popen(
                [sys.executable, "-I", template_worker.__file__, str(folder)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                env=variables,
                text=True,
                encoding="utf-8",
            )
        except OSError as error:
            raise ModelError(f"a process for the model's chat template can't be started: {error}") from error
        weakref.finalize(self, _stop_process, self._process)
        self._ask(None, START_SECONDS)
        answer = self._ask(self._begin, RENDER_SECONDS)
        if "error" in answer:
            raise ModelError(f"the model's chat template cannot be used: {quote_short(answer['error'], 200)}")

    def _ask(self, line: Any, seconds: float) -> dict[str, str]:
        """Send a line, if any, and read the answer. A process that doesn't answer in time is killed."""
        process = self._process
        assert process is not None and process.stdin is not None and process.stdout is not None
        late = threading.Event()

        def end() -> None:
            late.set()
            process.kill()

        timer = threading.Timer(seconds, end)
        timer.daemon = True
        timer.start()
        try:
            if line is not None:
                process.stdin.write(json.dumps(line) + "\n")
                process.stdin.flush()
            answer = process.stdout.readline()
        except OSError:  # it ended before it had read everything
            answer = ""
        except BaseException:  # Ctrl-C: the next output would be taken for the answer to the next chat
            _stop_process(process)
            self._process = None
            raise
        finally:
            timer.cancel()
        if answer.endswith("\n"):
            found: dict[str, str] = json.loads(answer)
            return found
        _stop_process(process)
        self._process = None
        why = f"took more than {seconds:g} seconds" if late.is_set() else "ended its process"
        self._broken = f"the model's chat template {why}"
        raise ModelError(self._broken, remedy=REMEDY)


REMEDY = "use this model only if you trust its source, and with a chat template that terminates"


def _stop_process(process: subprocess.Popen[str]) -> None:
    process.kill()
    process.wait()
    for stream in (process.stdin, process.stdout):
        if stream is not None:
            with suppress(OSError):
                stream.close()
