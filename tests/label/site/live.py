"""A site served by a process of its own, which can be killed and started again."""

from __future__ import annotations

import http.client
import re
import subprocess
import sys
import time
from pathlib import Path

from tests.label.site.postgres import free_port


class LiveServer:
    """``ragworth label serve`` on a free port."""

    def __init__(self, folder: Path, database: str = "") -> None:
        self.folder, self.database, self.port = folder, database, free_port()
        self.start()

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def start(self) -> None:
        command = [sys.executable, "-u", "-m", "ragworth", "label", "serve", str(self.folder), "--no-browser"]
        command += ["--port", str(self.port), *(["--database", self.database] if self.database else [])]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        assert self.process.stdout is not None
        self.link = ""
        for line in self.process.stdout:
            if found := re.search(r"http\S+/start/\S+", line):
                self.link = found[0]
                break
        self._wait()

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()
        assert self.process.stdout is not None
        self.process.stdout.close()

    def request(self, method: str, path: str, headers: dict[str, str], body: str = "") -> tuple[int, str]:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        try:
            connection.request(method, path, body.encode(), headers)
            reply = connection.getresponse()
            return reply.status, reply.read().decode()
        finally:
            connection.close()

    def _wait(self) -> None:
        for _ in range(600):
            try:
                self.request("GET", "/login/", {})
                return
            except OSError:
                time.sleep(0.05)
        raise AssertionError("the server doesn't answer")
