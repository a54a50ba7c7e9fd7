"""Print the help of every command, as docs/commands.md shows it."""

from ragworth.cli import main
from ragworth.report.reference_pages import command_page

if __name__ == "__main__":
    print(command_page(main))
