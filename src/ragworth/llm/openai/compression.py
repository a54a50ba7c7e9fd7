"""Decode compressed replies piece by piece, so that a limit on the decoded size is enforced before it is exceeded.

A few kilobytes of gzip can stand for gigabytes, and layers multiply. The client asks for gzip; deflate is also read,
since some servers send it unasked. Everything else is rejected without decoding a byte.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator

from ragworth.llm.openai.errors import malformed_reply

DECODED_BYTES = 1 << 18
"""Maximum bytes decoded at a time."""

_GZIP, _ZLIB, _RAW = 31, 15, -15
"""zlib's codes for the three forms: gzip, zlib, and deflate without a header."""

_NAMES = {"gzip": _GZIP, "x-gzip": _GZIP, "deflate": _ZLIB}


class ReplyDecoder:
    """Decodes one layer. Bytes after its end are ignored."""

    def __init__(self, form: int) -> None:
        self._form = form
        self._start = b""
        self._stream = None if form == _ZLIB else zlib.decompressobj(form)

    def decode(self, data: bytes) -> Iterator[bytes]:
        """Yield the decoded bytes in pieces of at most `PIECE`."""
        if self._stream is None:
            self._start += data
            if len(self._start) < 2:
                return
            data, self._stream = self._start, zlib.decompressobj(_ZLIB if _has_header(self._start) else _RAW)
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
        if self._stream is None or not self._stream.eof:
            raise malformed_reply("the reply is compressed and cut short")


def decoder_for(encodings: str) -> ReplyDecoder | None:
    """Return the decoder for a ``Content-Encoding`` header; None if nothing is compressed."""
    names = [name for name in (one.strip().lower() for one in encodings.split(",")) if name not in ("", "identity")]
    if not names:
        return None
    if len(names) > 1 or names[0] not in _NAMES:
        raise malformed_reply("the reply is compressed in a way that can't be read; one layer of gzip or deflate can")
    return ReplyDecoder(_NAMES[names[0]])


def _has_header(start: bytes) -> bool:
    """Whether deflated data begins with zlib's header, as the standard requires; some servers omit it."""
    return start[0] & 15 == 8 and (start[0] << 8 | start[1]) % 31 == 0
