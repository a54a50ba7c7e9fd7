"""Run chat templates, which are programs that come with a model, in Jinja's sandbox."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from datetime import datetime
from importlib.util import find_spec
from typing import Any, TypeAlias

from ragworth.core.errors import MissingExtraError, ModelError, quote_short

RenderChat: TypeAlias = Callable[[list[dict[str, str]]], str]
"""Turns messages, each with a role and content, into the text that the model reads."""

MAX_TEMPLATE_LENGTH = 1 << 20
"""Maximum characters of a template; the longest known have some 30,000."""


class TemplateError(ModelError):
    """The template raised an error for these messages; many do for a system turn."""


def load_chat_template(source: str, facts: Mapping[str, Any]) -> RenderChat:
    """Load a Jinja chat template that comes with a model.

    ``facts`` are what a template may refer to besides the messages, such as ``bos_token``.
    """
    if find_spec("jinja2") is None:
        raise MissingExtraError("jinja2", "embedded", "a model with a chat template")
    if len(source) > MAX_TEMPLATE_LENGTH:
        raise ModelError(
            f"the model's chat template has {len(source):,} characters", expected=f"up to {MAX_TEMPLATE_LENGTH:,}"
        )
    try:
        template = _compile_template(source)
    except Exception as error:
        raise ModelError(f"the model's chat template cannot be used: {quote_short(str(error), 200)}") from error

    def render(messages: list[dict[str, str]]) -> str:
        try:
            text: str = template.render(messages=messages, add_generation_prompt=True, **facts)
        except Exception as error:
            why = quote_short(str(error), 200)
            raise TemplateError(f"the model's chat template refuses a chat: {why}") from error
        return text

    return render


def _compile_template(source: str) -> Any:
    """Compile a template with the functions and filters that models' templates use."""
    from jinja2 import TemplateError as JinjaError
    from jinja2 import nodes
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
        raise JinjaError(message)

    def to_json(value: Any, ensure_ascii: bool = False, indent: int | None = None, **more: Any) -> str:
        return json.dumps(value, ensure_ascii=ensure_ascii, indent=indent, **more)

    def now(form: str) -> str:
        return datetime.now().strftime(form)

    environment = ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=["jinja2.ext.loopcontrols", Generation]
    )
    environment.globals |= {"raise_exception": refuse, "strftime_now": now}
    environment.filters["tojson"] = to_json
    return environment.from_string(source)
