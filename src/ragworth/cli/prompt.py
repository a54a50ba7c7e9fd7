"""``ragworth prompt``."""

from __future__ import annotations

from pathlib import Path

import click


@click.command("prompt", short_help="List the prompts, or show one.")
@click.argument("name", required=False)
@click.option(
    "--prompts", type=click.Path(file_okay=False), help="Folder with your own prompts; they replace the built-in ones."
)
@click.option("--source", is_flag=True, help="Print the prompt file, as a start for your own.")
def command(name: str | None, prompts: str | None, source: bool) -> None:
    """List the prompts, or show one with its slots and version.

    \b
    ragworth prompt
    ragworth prompt abstention
    ragworth prompt abstention --source > my-prompts/abstention.txt
    """
    from ragworth.llm.prompts import PROMPT_SETS, load_prompt, prompt_names
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
    slots = ", ".join(f"{slot} ({what})" for slot, what in template.slots.items())
    click.echo(f"{template.name}, version {template.version}\nslots: {slots}\n\n{printable(template.about)}\n")
    if template.reply.declared:
        click.echo(f"[reply]\n{printable(template.reply.source)}\n")
    click.echo("\n\n".join(f"[{message.role}]\n{printable(message.text)}" for message in template.messages))
