"""docs/commands.md: the help of every command."""

from figures.declare import Page, Shown, figure
from figures.running import Run


@figure("ragworth COMMAND --help", seconds=1, whole="docs/commands.md")
def commands(run: Run) -> Shown:
    from ragworth.cli import main
    from ragworth.report.reference_pages import command_page

    yield "docs/commands.md", Page(command_page(main))
