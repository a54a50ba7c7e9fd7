"""``python -m ragworth``."""

from ragworth.cli import main

main(prog_name="ragworth")
