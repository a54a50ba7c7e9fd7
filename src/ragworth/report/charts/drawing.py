"""Charts as files: drawn in the light theme, without a browser."""

from __future__ import annotations

import atexit
import base64
import json
import signal
import subprocess
import sys
import threading
import warnings
from collections.abc import Mapping
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path

from ragworth.core.errors import MissingExtraError, ResourceError
from ragworth.report.charts import drawing_worker
from ragworth.report.charts.base import LIGHT, Spec, apply_colors, vega_config

WIDTH = 640
SCALE = 2
"""Pixels of a PNG for each of a page."""


def draw_charts(charts: Mapping[str, Spec]) -> dict[str, bytes]:
    """Charts as files, by names that end in ``.svg`` or ``.png``.

    Without the memory to draw them there is a warning and no file: pages draw their charts themselves.
    """
    try:
        return {name: _PROCESS.draw(spec, name.rpartition(".")[2]) for name, spec in charts.items()}
    except ResourceError as error:
        warnings.warn(f"no pictures beside the page, which draws its charts itself: {error}", UserWarning, stacklevel=3)
        return {}


def render_svg(spec: Spec) -> str:
    """A chart as an SVG file."""
    return _PROCESS.draw(spec, "svg").decode()


def render_png(spec: Spec) -> bytes:
    """A chart as a PNG file."""
    return _PROCESS.draw(spec, "png")


class _DrawingProcess:
    """The process that draws, started with the first chart: where memory is limited, the library kills its process."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None

    def draw(self, spec: Spec, ending: str) -> bytes:
        """Draw a chart, or raise `ResourceError` if the process ends."""
        options = {"scale": SCALE} if ending == "png" else {}
        line = json.dumps([ending, _complete_spec(spec), options]).encode() + b"\n"
        with self._lock:
            process = self._process = self._process or _start_process()
            try:
                reply = _ask(process, line)
            except BaseException:  # of an interrupt, too: the next output would be taken for the next chart
                self._process = None
                _end_process(process)
                raise
        if "error" in reply:
            raise ValueError(reply["error"])
        return base64.b64decode(reply["file"])

    def close(self) -> None:
        """End the process, if there is one."""
        with self._lock:
            process, self._process = self._process, None
        if process is not None:
            _end_process(process)


_PROCESS = _DrawingProcess()
atexit.register(_PROCESS.close)


def _start_process() -> subprocess.Popen[bytes]:
    library = find_spec("vl_convert")
    if library is None or library.origin is None:
        raise MissingExtraError("vl-convert-python", "report", "drawing the report's charts")
    command = [sys.executable, "-I", drawing_worker.__file__, str(Path(library.origin).parents[1])]
    try:
        return subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,  # Ctrl-C is for the process that asks
        )
    except OSError as error:
        raise ResourceError(f"the process that draws them can't be started ({error})") from error


def _ask(process: subprocess.Popen[bytes], line: bytes) -> dict[str, str]:
    assert process.stdin is not None and process.stdout is not None
    answer = b""
    with suppress(OSError):  # it ended before it had read everything
        process.stdin.write(line)
        process.stdin.flush()
        answer = process.stdout.readline()
    if answer.endswith(b"\n"):
        reply: dict[str, str] = json.loads(answer)
        return reply
    code = process.wait()
    how = f"by {signal.Signals(-code).name}" if code < 0 else f"with status {code}"
    raise ResourceError(
        f"the process that draws them ended {how}, probably for lack of memory: raise its limit (ulimit -v)"
    )


def _end_process(process: subprocess.Popen[bytes]) -> None:
    process.kill()
    process.wait()
    for stream in (process.stdin, process.stdout):
        if stream is not None:
            with suppress(OSError):
                stream.close()


def _complete_spec(spec: Spec) -> Spec:
    """With its colours; as wide as a file's where it is to fill its place in a page."""
    width = WIDTH if spec["width"] == "container" else spec["width"]
    config = {**vega_config(LIGHT, "sans-serif"), "background": LIGHT["paper"]}
    return {**apply_colors(spec), "width": width, "padding": 8, "config": config}
