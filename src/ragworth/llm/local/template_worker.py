"""Render a chat template in a separate process that `chat_templates` can end.

Run as a script, it needs only Jinja2. It writes a line of JSON when it is ready. Then it reads a line with the template
and its variables, and a line with the messages of each chat, and answers every line with one: ``{"text": …}`` or
``{"error": …}``.
"""

from __future__ import annotations

import json
import signal
import sys
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any

MAX_RENDERED_LENGTH = 1 << 24
"""Maximum characters of a rendered chat."""

MAX_MEMORY = 1 << 29
"""Maximum bytes that the process may use."""

ORPHAN_SECONDS = 120
"""Seconds after which the process ends itself during a chat, because its parent is gone."""


def compile_template(source: str, facts: Mapping[str, Any]) -> Callable[[list[dict[str, str]]], str]:
    """Compile a template to a function of messages, in Jinja's sandbox; ``facts`` are its other variables."""
    from jinja2 import TemplateError, nodes
    from jinja2.ext import Extension
    from jinja2.sandbox import ImmutableSandboxedEnvironment

    class Generation(Extension):
        """``{% generation %}…{% endgeneration %}``, which marks training targets and is ignored."""

        tags = {"generation"}  # noqa: RUF012

        def parse(self, parser: Any) -> nodes.Node:
            line = next(parser.stream).lineno
            body = parser.parse_statements(("name:endgeneration",), drop_needle=True)
            return nodes.Scope(body).set_lineno(line)

    def refuse(message: str) -> None:
        raise TemplateError(message)

    def to_json(value: Any, ensure_ascii: bool = False, indent: int | None = None, **more: Any) -> str:
        return json.dumps(value, ensure_ascii=ensure_ascii, indent=indent, **more)

    def now(form: str) -> str:
        return datetime.now().strftime(form)

    environment = ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=["jinja2.ext.loopcontrols", Generation]
    )
    environment.globals |= {"raise_exception": refuse, "strftime_now": now}
    environment.filters["tojson"] = to_json
    template = environment.from_string(source)

    def render(messages: list[dict[str, str]]) -> str:
        return template.render(messages=messages, add_generation_prompt=True, **facts)

    return render


def main() -> None:
    """Answer line after line until the input ends.

    A terminal sends Ctrl-C to this process too. Only the parent handles it, because it may have chats to finish.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    import jinja2.sandbox  # noqa: F401  # slow, so imported before the clock starts

    _limit_memory()
    _send({"text": ""})
    render: Callable[[list[dict[str, str]]], str] | None = None
    for line in sys.stdin:
        _set_alarm(ORPHAN_SECONDS)
        try:
            asked = json.loads(line)
            if render is None:
                render = compile_template(asked["source"], asked["facts"])
                answer = {"text": ""}
            else:
                text = render(asked)
                answer = (
                    {"text": text}
                    if len(text) <= MAX_RENDERED_LENGTH
                    else {"error": f"it made {len(text):,} characters"}
                )
        except Exception as error:  # anything a template can cause, including memory and recursion errors
            answer = {"error": f"{error}"[:1000] or type(error).__name__}
        _send(answer)
        _set_alarm(0)


def _send(answer: dict[str, str]) -> None:
    sys.stdout.write(json.dumps(answer) + "\n")
    sys.stdout.flush()


def _limit_memory() -> None:
    """Limit this process's memory, if the system supports it."""
    try:
        import resource

        resource.setrlimit(resource.RLIMIT_AS, (MAX_MEMORY, MAX_MEMORY))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    except (ImportError, ValueError, OSError):
        pass


def _set_alarm(seconds: int) -> None:
    """Let the system end this process after some seconds; 0 means never."""
    if hasattr(signal, "alarm"):
        signal.alarm(seconds)


if __name__ == "__main__":
    sys.path[0] = sys.argv[1]  # the location of Jinja2 instead of this file's
    main()
