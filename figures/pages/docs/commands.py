"""docs/commands.md: the help of every command."""

from figures.declare import Page, Shown, figure
from figures.running import Run


@figure("ragworth COMMAND --help", seconds=2, whole="docs/commands.md")
def commands(run: Run) -> Shown:
    # In a process of its own, where nothing has changed a command or a registry.
    yield "docs/commands.md", Page(run.output("python figures/print_commands.py").rstrip() + "\n")
