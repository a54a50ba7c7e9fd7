"""Encrypted connections: certificates are checked, against those that the environment names or the usual ones."""

from __future__ import annotations

import shutil
import ssl
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from ragworth.core.errors import ModelError
from ragworth.llm.contract import Generate, Generated, Prompt
from ragworth.llm.openai import rate_limit
from ragworth.llm.openai.model import open_model
from tests.llm.openai.endpoint import Endpoint

pytestmark = pytest.mark.skipif(shutil.which("openssl") is None, reason="needs openssl to make a certificate")


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file with a certificate for this machine and its key."""
    folder = tmp_path_factory.mktemp("tls")
    line = "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj /CN=localhost"
    names = ["-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1"]
    files = ["-keyout", str(folder / "key.pem"), "-out", str(folder / "cert.pem")]
    subprocess.run([*line.split(), *names, *files], check=True, capture_output=True)
    (folder / "both.pem").write_text((folder / "key.pem").read_text() + (folder / "cert.pem").read_text())
    return folder / "both.pem"


@pytest.fixture
def server(certificate: Path) -> Iterator[Endpoint]:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    with Endpoint(tls=context) as server:
        yield server


def test_a_certificate_that_the_environment_names(
    server: Endpoint, certificate: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate.with_name("cert.pem")))
    model = open_model(f"toy@{server.url}")
    found = model.generate([Generate(Prompt.chat("hello"), max_tokens=1)] * 3)
    model.close()
    assert all(isinstance(one, Generated) for one in found)


def test_a_certificate_that_nobody_vouches_for(server: Endpoint, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rate_limit, "FIRST_WAIT", 0.005)
    monkeypatch.delenv("SSL_CERT_FILE", raising=False)
    monkeypatch.delenv("SSL_CERT_DIR", raising=False)
    model = open_model(f"toy@{server.url}")
    with pytest.raises(ModelError, match="unreachable") as caught:
        model.card  # noqa: B018
    model.close()
    assert "CERTIFICATE_VERIFY_FAILED" in str(caught.value)
    assert not server.seen
