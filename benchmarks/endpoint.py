"""CPU time of a call to an endpoint: a bare aiohttp loop, ragworth's client, and a whole job, in one run.

All three send the same requests to a server in another process, a few at a time. The bare loop parses each reply and
drops it. The client (`generate`, `choose`) adds the rate limit, the deadline, retries and checks of the reply. A job
adds keys, budgets and the store, which commits every answer before it is handed out. CPU time of this process is
compared, not wall time; runs take turns.

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
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import aiohttp

from ragworth.calls.job import Job
from ragworth.calls.store import Store
from ragworth.llm import llm
from ragworth.llm.contract import Choose, Failure, Generate, Prompt, Request

WORDS = "lorem ipsum dolor sit amet consectetur adipiscing elit sed do " * 13
LABELS = ("yes", "no")
TEXT = "The harbour of Lower Tarn was built in 1874 by the brothers Ansgar and Ole Brandt."


def requests(kind: str, number: int) -> list[Request]:
    """Prompts of about 1,000 characters, all different."""
    prompts = [Prompt.chat(f"Document {i}: {WORDS}\n\nQuestion: what is {i}?") for i in range(number)]
    if kind == "choose":
        return [Choose(prompt, LABELS) for prompt in prompts]
    return [Generate(prompt, max_tokens=64) for prompt in prompts]


def body(request: Request) -> dict[str, Any]:
    """The JSON that ragworth sends for a request."""
    messages = [{"role": "user", "content": request.prompt.messages[0].content}]
    if isinstance(request, Choose):
        shown = {"logprobs": True, "top_logprobs": 20}
        return {"model": "toy", "max_tokens": 1, "temperature": 0.0, "messages": messages, **shown}
    return {"model": "toy", "max_tokens": 64, "temperature": 0.0, "messages": messages}


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
    """Reads HTTP/1.1 requests with a Content-Length, and answers at once."""

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
    """Run the server, in a process of its own."""

    async def work() -> None:
        server = await asyncio.get_running_loop().create_server(Server, "127.0.0.1", 0)
        pipe.send(server.sockets[0].getsockname()[1])
        await server.serve_forever()

    asyncio.run(work())


def bare(url: str, asked: list[Request], width: int) -> None:
    """The same requests without ragworth."""

    async def work() -> None:
        waiting = iter(asked)

        async def worker(session: aiohttp.ClientSession) -> None:
            for one in waiting:
                async with session.post(f"{url}/v1/chat/completions", json=body(one)) as response:
                    response.raise_for_status()
                    assert (await response.json())["choices"]

        async with aiohttp.ClientSession() as session:
            await asyncio.gather(*(worker(session) for _ in range(width)))

    asyncio.run(work())


def through_client(url: str, asked: list[Request], width: int) -> None:
    """One request a call, from as many threads as requests are under way, which is how jobs call a model."""
    model = llm(f"openai:toy@{url}", concurrency=width)
    ask: Callable[[Any], list[Any]] = model.choose if isinstance(asked[0], Choose) else model.generate  # type: ignore[attr-defined]
    with ThreadPoolExecutor(width) as threads:
        for (outcome,) in threads.map(lambda one: ask([one]), asked):
            assert not isinstance(outcome, Failure), outcome
    model.close()


def through_job(url: str, asked: list[Request], width: int, folder: Path) -> None:
    model = llm(f"openai:toy@{url}", concurrency=width)
    with Store(folder / f"{time.monotonic_ns()}.sqlite") as store:
        for outcome in Job(model, store).run(asked):
            assert not isinstance(outcome, Failure), outcome
    model.close()


def spent(work: Callable[[], None]) -> float:
    """Seconds of CPU time, in all threads of this process."""
    gc.collect()
    start = time.process_time()
    work()
    return time.process_time() - start


def measure(kind: str, width: int, options: argparse.Namespace, url: str, folder: Path) -> str:
    """A line of the table: medians over runs that take turns."""
    asked = requests(kind, options.calls)
    ways: list[Callable[[list[Request]], None]] = [
        lambda some: bare(url, some, width),
        lambda some: through_client(url, some, width),
        lambda some: through_job(url, some, width, folder),
    ]
    for way in ways:
        way(asked[:50])
    times = [[1000 * spent(partial(way, asked)) / options.calls for way in ways] for _ in range(options.times)]
    without, client, job = (statistics.median(column) for column in zip(*times, strict=True))
    ratio = statistics.median(row[1] / row[0] for row in times)
    return f"| {kind} | {width} | {without:.2f} | {client:.2f} | {ratio:.2f} | {job:.2f} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--calls", type=int, default=1000)
    parser.add_argument("--times", type=int, default=5)
    parser.add_argument("--widths", type=int, nargs="+", default=[1, 16], help="requests under way at a time")
    options = parser.parse_args()
    spawn = multiprocessing.get_context("spawn")
    receiver, sender = spawn.Pipe()
    server = spawn.Process(target=serve, args=(sender,), daemon=True)
    server.start()
    url = f"http://127.0.0.1:{receiver.recv()}"
    print("| request | at a time | bare aiohttp, ms | client, ms | ratio | job, ms |")
    print("| --- | ---: | ---: | ---: | ---: | ---: |")
    with tempfile.TemporaryDirectory() as folder:
        for kind in ("generate", "choose"):
            for width in options.widths:
                print(measure(kind, width, options, url, Path(folder)), flush=True)
    server.terminate()
    server.join()


if __name__ == "__main__":
    main()
