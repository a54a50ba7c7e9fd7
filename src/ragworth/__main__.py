"""The command line's first lines: ``python -m ragworth``, and the script ``ragworth``.

They stand before everything that takes long to import, so that Ctrl-C is handled from the start.
"""

import os

try:
    from ragworth.core.interrupts import EXIT_CODE, exit_now, install

    install()
except KeyboardInterrupt:
    os._exit(130)


def run() -> None:
    """Run the command line and end the process."""
    try:
        from ragworth.cli import main
        from ragworth.cli.process import start

        start(main)
    except KeyboardInterrupt:
        exit_now(EXIT_CODE)


if __name__ == "__main__":
    run()
