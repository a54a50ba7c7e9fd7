"""What a call to an endpoint costs this machine: CPU time through ragworth against a bare httpx loop.

Both send the same requests to a server in another process, a few at a time, and read the same replies. The bare loop
parses each reply and drops it. ragworth's run is a whole job: keys, store (every answer committed before it is handed
out), budgets, deadlines, checks of the reply. CPU time of this process is compared, not wall time; runs take turns.

    python benchmarks/endpoint.py
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import json
import math
import multiprocessing
import statistics
import tempfile
import time
from collections.abc import Callable
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import httpx

from ragworth.calls.job import Job
from ragworth.calls.store import Store
from ragworth.llm import llm
from ragworth.llm.contract import Choose, Failure, Generate, Prompt, Request
from ragworth.llm.openai.protocol import RequestFormat, request_body

WORDS = "lorem ipsum dolor sit amet consectetur adipiscing elit sed do " * 13
LABELS = ("yes", "no")
TEXT = "The harbour of Lower Tarn was built in 1874 by the brothers Ansgar and Ole Brandt."


def requests(kind: str, number: int) -> list[Request]:
    """Prompts of about 1,000 characters, all different."""
    prompts = [Prompt.chat(f"Document {i}: {WORDS}\n\nQuestion: what is {i}?") for i in range(number)]
    if kind == "choose":
        return [Choose(prompt, LABELS) for prompt in prompts]
    return [Generate(prompt, max_tokens=64) for prompt in prompts]


def reply(question: dict[str, Any]) -> dict[str, Any]:
    """What a server of OpenAI's kind replies: a sentence, or one token with the 20 likeliest."""
    if "response_format" in question:
        return _completion("{}", None)
    if not question.get("logprobs"):
        return _completion(TEXT, None)
    names = [*LABELS, *(f"token{i}" for i in range(18))]
    top = [_token(name, math.log(0.5) * (i + 1)) for i, name in enumerate(names)]
    return _completion("yes", {"content": [{**top[0], "top_logprobs": top}]})


def _completion(text: str, logprobs: Any) -> dict[str, Any]:
    message = {"role": "assistant", "content": text, "refusal": None}
    choice = {"index": 0, "message": message, "logprobs": logprobs, "finish_reason": "stop"}
    usage = {"prompt_tokens": 260, "completion_tokens": 20, "total_tokens": 280}
    return {"id": "chatcmpl-1", "object": "chat.completion", "model": "toy", "choices": [choice], "usage": usage}


def _token(name: str, logprob: float) -> dict[str, Any]:
    return {"token": name, "logprob": logprob, "bytes": list(name.encode())}


class Server(asyncio.Protocol):
    """Reads HTTP/1.1 requests with a Content-Length, as httpx writes them, and answers at once."""

    def __init__(self) -> None:
        self._data = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        self._data += data
        while (end := self._data.find(b"\r\n\r\n")) >= 0:
            head = self._data[:end].lower()
            length = int(head.partition(b"content-length:")[2].partition(b"\r\n")[0] or 0)
            if len(self._data) < end + 4 + length:
                return
            content, self._data = self._data[end + 4 : end + 4 + length], self._data[end + 4 + length :]
            value = reply(json.loads(content)) if content else {"data": [{"id": "toy"}]}
            text = json.dumps(value).encode()
            self._transport.write(
                b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%b" % (len(text), text)
            )


def serve(pipe: Connection) -> None:
    """What the other process does."""

    async def work() -> None:
        server = await asyncio.get_running_loop().create_server(Server, "127.0.0.1", 0)
        pipe.send(server.sockets[0].getsockname()[1])
        await server.serve_forever()

    asyncio.run(work())


def bare(url: str, bodies: list[dict[str, Any]], width: int) -> None:
    """The same requests without ragworth."""

    async def work() -> None:
        waiting = iter(bodies)

        async def worker(client: httpx.AsyncClient) -> None:
            for one in waiting:
                response = await client.post(f"{url}/v1/chat/completions", json=one)
                response.raise_for_status()
                assert response.json()["choices"]

        async with httpx.AsyncClient(timeout=120, trust_env=False) as client:
            await asyncio.gather(*(worker(client) for _ in range(width)))

    asyncio.run(work())


def through_ragworth(url: str, asked: list[Request], width: int, folder: Path) -> None:
    model = llm(f"openai:toy@{url}", concurrency=width)
    path = folder / f"{time.monotonic_ns()}.sqlite"
    with Store(path) as store:
        for outcome in Job(model, store).run(asked):
            assert not isinstance(outcome, Failure), outcome
    model.close()


def spent(work: Callable[[], None]) -> float:
    """Seconds of CPU time, in all threads of this process."""
    gc.collect()
    start = time.process_time()
    work()
    return time.process_time() - start


def measure(kind: str, width: int, given: argparse.Namespace, url: str, folder: Path) -> str:
    """A line of the table: medians over runs that take turns."""
    asked = requests(kind, given.calls)
    top, length = (20, 1) if kind == "choose" else (0, 64)
    bodies = [
        request_body("toy", Generate(one.prompt, max_tokens=length), RequestFormat(True, top=top), seed=0, n=1)
        for one in asked
    ]
    bare(url, bodies[:50], width)
    through_ragworth(url, asked[:50], width, folder)
    ours, theirs = [], []
    for _ in range(given.times):
        theirs.append(1000 * spent(lambda: bare(url, bodies, width)) / given.calls)
        ours.append(1000 * spent(lambda: through_ragworth(url, asked, width, folder)) / given.calls)
    ratios = [one / other for one, other in zip(ours, theirs, strict=True)]
    middle = statistics.median
    return (
        f"| {kind} | {width} | {middle(theirs):.2f} | {middle(ours):.2f} | {middle(ratios):.2f} "
        f"| {min(ratios):.2f} to {max(ratios):.2f} |"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--calls", type=int, default=1000)
    parser.add_argument("--times", type=int, default=5)
    parser.add_argument("--widths", type=int, nargs="+", default=[1, 4, 16], help="requests under way at a time")
    given = parser.parse_args()
    spawn = multiprocessing.get_context("spawn")
    mine, other = spawn.Pipe()
    server = spawn.Process(target=serve, args=(other,), daemon=True)
    server.start()
    url = f"http://127.0.0.1:{mine.recv()}"
    print("| request | at a time | bare httpx, ms | ragworth, ms | ratio | least and greatest |")
    print("| --- | ---: | ---: | ---: | ---: | --- |")
    with tempfile.TemporaryDirectory() as folder:
        for kind in ("generate", "choose"):
            for width in given.widths:
                print(measure(kind, width, given, url, Path(folder)), flush=True)
    server.terminate()
    server.join()


if __name__ == "__main__":
    main()
