"""``ragworth rewrite``: train a query rewriter on what its rewrites are worth."""

from __future__ import annotations

import click

from ragworth.cli.rewrite_tables import candidates, label, pairs
from ragworth.cli.rewrite_train import train


@click.group("rewrite", short_help="Train a query rewriter on what its rewrites are worth.")
def command() -> None:
    """Train a model to rewrite conversational questions, by what each rewrite's passages are worth to the reader.

    The commands read and write tables (JSONL, CSV, TSV, Parquet), in this order:

    \b
    ragworth rewrite candidates -c conversations.jsonl -p passages.jsonl -M embedded:base -n 4 -o candidates.jsonl
    ragworth rewrite label candidates.jsonl -c conversations.jsonl -p passages.jsonl -o labels.jsonl
    ragworth rewrite pairs labels.jsonl -o pairs.jsonl --best best.jsonl
    ragworth rewrite train -c conversations.jsonl --sft best.jsonl --pairs pairs.jsonl --base embedded:base -o rewriter

    A trained rewriter is a step of a pipeline: rewritten("rewriter") >> bm25 % 10. To compare it with others, name such
    pipelines as systems, and evaluate them.
    """


for each in (candidates, label, pairs, train):
    command.add_command(each)
