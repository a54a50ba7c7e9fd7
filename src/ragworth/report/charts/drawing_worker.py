"""A process that draws charts: it reads the format and specification of a chart from each line, and answers by a line.

It runs without ragworth, whose folder isn't in its path.
"""

from __future__ import annotations

import base64
import json
import sys


def main() -> None:
    """Draw charts until the input ends. The argument is the folder that vl_convert is installed in."""
    sys.path.append(sys.argv[1])
    import vl_convert

    for line in sys.stdin.buffer:
        ending, spec, options = json.loads(line)
        try:
            drawn = getattr(vl_convert, f"vegalite_to_{ending}")(spec, **options)
            reply = {"file": base64.b64encode(drawn.encode() if isinstance(drawn, str) else drawn).decode()}
        except Exception as error:  # the library raises several types
            reply = {"error": str(error)}
        sys.stdout.write(json.dumps(reply) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
