"""An S3 server on this machine, by moto."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

BUCKET = "collections"


@contextmanager
def s3_server() -> Iterator[str]:
    """A server with an empty bucket; the environment points to it."""
    from moto.server import ThreadedMotoServer

    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("AWS_ENDPOINT_URL", f"http://{host}:{port}")
        patch.setenv("AWS_ACCESS_KEY_ID", "testing")
        patch.setenv("AWS_SECRET_ACCESS_KEY", "a-secret-for-tests")
        patch.setenv("AWS_REGION", "us-east-1")
        _create(f"http://{host}:{port}/{BUCKET}")
        try:
            yield f"s3://{BUCKET}"
        finally:
            server.stop()


def _create(url: str) -> None:
    import urllib.request

    with urllib.request.urlopen(urllib.request.Request(url, method="PUT")) as answer:
        assert answer.status == 200
