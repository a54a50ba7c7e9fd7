"""``ragworth models``."""

from __future__ import annotations

import click


@click.command("models", short_help="List the kinds of models, or describe one.")
@click.argument("model", required=False)
@click.option("-O", "--option", "settings", multiple=True, metavar="NAME=VALUE", help="Set an option of the model.")
def command(model: str | None, settings: tuple[str, ...]) -> None:
    """List the kinds of models, or describe one: its identity, what it can do, how much it reads.

    To find out, an endpoint gets one small request.

    \b
    ragworth models
    ragworth models embedded
    ragworth models openai:NAME@http://localhost:8000
    """
    from ragworth.cli.model_options import open_named_model
    from ragworth.llm import KINDS, MODELS
    from ragworth.report.render import printable

    if model is None:
        for name in MODELS.names():
            form, words = KINDS.get(name, (f"{name}:…", "from another package"))
            click.echo(f"{form:<24} {words}")
        click.echo("\nragworth models MODEL describes one.")
        return
    found = open_named_model(model, settings)
    try:
        card = found.card
        facts = [
            ("name", card.name),
            ("backend", card.backend),
            ("endpoint", card.endpoint),
            ("revision", card.revision),
            ("computes in", card.quantisation),
            ("template", card.template),
            ("can", ", ".join(sorted(card.abilities)) or "nothing"),
            ("reads", f"{card.context_length:,} tokens" if card.context_length else "an unknown number of tokens"),
            ("prompts too long", "are cut in their passages" if card.cuts else "are refused"),
        ]
        for title, words in facts:
            if words:
                click.echo(f"{title + ':':<18} {printable(str(words))}")
        for note in card.notes:
            click.echo(f"note: {printable(note)}")
    finally:
        found.close()
