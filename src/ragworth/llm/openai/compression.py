"""Decode compressed replies piece by piece, so that a limit on the decoded size is enforced before it is exceeded.

A few kilobytes of gzip can stand for gigabytes, and layers multiply. The client asks for gzip; everything else is
rejected without decoding a byte.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator

from ragworth.llm.openai.errors import malformed_reply

DECODED_BYTES = 1 << 18
"""Maximum bytes decoded at a time."""

_GZIP = 31
"""zlib's code for gzip."""


class ReplyDecoder:
    """Decodes one layer of gzip. Bytes after its end are ignored."""

    def __init__(self) -> None:
        self._stream = zlib.decompressobj(_GZIP)

    def decode(self, data: bytes) -> Iterator[bytes]:
        """Yield the decoded bytes in pieces of at most `DECODED_BYTES`."""
        try:
            # A full piece may have more behind it, even if all input is consumed.
            size = DECODED_BYTES
            while (data or size == DECODED_BYTES) and not self._stream.eof:
                piece = self._stream.decompress(data, DECODED_BYTES)
                data, size = self._stream.unconsumed_tail, len(piece)
                yield piece
        except zlib.error:
            raise malformed_reply("the reply is compressed and damaged") from None

    def finish(self) -> None:
        """Raise if the end is missing."""
        if not self._stream.eof:
            raise malformed_reply("the reply is compressed and cut short")


def decoder_for(encodings: str) -> ReplyDecoder | None:
    """Return the decoder for a ``Content-Encoding`` header; None if nothing is compressed."""
    names = [name for name in (one.strip().lower() for one in encodings.split(",")) if name not in ("", "identity")]
    if not names:
        return None
    if names not in (["gzip"], ["x-gzip"]):
        raise malformed_reply("the reply is compressed in a way that can't be read; one layer of gzip can")
    return ReplyDecoder()
