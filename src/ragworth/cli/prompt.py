"""``ragworth prompt``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from ragworth.errors import PromptError
from ragworth.nested_text import parse_json


@click.command("prompt", short_help="Show a prompt, or render it without a model.")
@click.argument("name", required=False)
@click.option(
    "--set",
    "given",
    multiple=True,
    metavar="SLOT=VALUE",
    help="Fill a slot with text, @FILE or a JSON list; put \\ before text that begins with @ or [.",
)
@click.option(
    "--prompts", type=click.Path(file_okay=False), help="Folder with your own prompts; they replace the built-in ones."
)
@click.option("--source", is_flag=True, help="Print the prompt file, as a start for your own.")
def command(name: str | None, given: tuple[str, ...], prompts: str | None, source: bool) -> None:
    """List the prompts, show one with its slots and version, or render it with values.

    \b
    ragworth prompt
    ragworth prompt abstention
    ragworth prompt abstention --set query='Who?' --set passage=@passage.txt
    ragworth prompt abstention --source > my-prompts/abstention.txt
    """
    from ragworth.prompts import PROMPT_SETS, load_prompt, prompt_names
    from ragworth.report.render import printable

    if name is None:
        papers = sorted(f"papers/{path.stem}" for path in PROMPT_SETS["papers"].glob("*.txt"))
        names = (*prompt_names(prompts), *papers)
        width = max(map(len, names))
        for each in names:
            about = load_prompt(each, prompts).about.splitlines() or [""]
            click.echo(f"{each:<{width}}  {printable(about[0])}".rstrip())
        click.echo("\nragworth prompt NAME shows one.")
        return
    template = load_prompt(name, prompts)
    if source:
        click.echo(Path(template.file).read_text(encoding="utf-8"), nl=False)
        return
    if given:
        values = [_value(text) for text in given]
        if len(dict(values)) < len(values):
            raise PromptError("a slot was given twice", remedy="give each slot once")
        prompt = template.render(dict(values))
        shown: list[tuple[str, str]] = [(message.role, message.content) for message in prompt.messages]
    else:
        slots = ", ".join(f"{slot} ({what})" for slot, what in template.slots.items())
        click.echo(f"{template.name}, version {template.version}\nslots: {slots}\n\n{printable(template.about)}\n")
        if template.reply.declared:
            click.echo(f"[reply]\n{printable(str(template.reply))}\n")
        shown = [(message.role, message.text) for message in template.messages]
    click.echo("\n\n".join(f"[{role}]\n{printable(text)}" for role, text in shown))


def _value(text: str) -> tuple[str, Any]:
    slot, equals, value = text.partition("=")
    if not equals:
        raise PromptError(f"{text!r} sets nothing", expected="SLOT=VALUE, SLOT=@FILE or SLOT=[…]")
    if value.startswith("\\"):
        return slot, value[1:]
    if value.startswith("@"):
        try:
            return slot, Path(value[1:]).read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise PromptError(f"the value of {slot!r} cannot be read: {error}", file=value[1:]) from error
    if value.startswith("["):
        try:
            return slot, parse_json(value)
        except ValueError as error:
            raise PromptError(f"the list for {slot!r} is no JSON: {error}", expected='["one", "two"]') from error
    return slot, value
