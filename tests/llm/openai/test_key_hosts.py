"""Which key belongs to which host, and addresses that only look like one."""

from __future__ import annotations

import pytest

from ragworth.errors import ModelError
from ragworth.llm.openai.key_hosts import OWN_HOSTS, is_own_host
from ragworth.llm.openai.spec import parse_address


def own(variable: str, url: str) -> bool:
    """As a workspace writes it."""
    try:
        return is_own_host(variable, parse_address(f"model@{url}").url)
    except ModelError:
        return False


def test_every_known_key_goes_to_its_own_hosts_and_to_no_other() -> None:
    for variable, hosts in OWN_HOSTS.items():
        for host in hosts:
            assert own(variable, f"https://{host}/v1")
            assert own(variable, f"https://{host}")
            assert own(variable, f"HTTPS://{host.upper()}:443/openai/v1")
            strangers = {name for name, theirs in OWN_HOSTS.items() if host not in theirs}
            assert not any(own(name, f"https://{host}/v1") for name in strangers)
    assert not own("AWS_SECRET_ACCESS_KEY", "https://api.openai.com/v1")


@pytest.mark.parametrize(
    "url",
    [
        "http://api.openai.com/v1",
        "https://api.openai.com:8443/v1",
        "https://api.openai.com.evil.example/v1",
        "https://evil.example/api.openai.com/v1",
        "https://api.openai.com@evil.example/v1",
        "https://api.openai.com:443@evil.example/v1",
        "https://evil.example#api.openai.com",
        "https://evil.example?https://api.openai.com/",
        "https://api.openai.com\\.evil.example/v1",
        "https://api.openai.com\\@evil.example/v1",
        "https://api.openai.com%2f.evil.example/v1",
        "https://api.openai.com./v1",
        "https://sub.api.openai.com/v1",
        "https://api-openai.com/v1",
        "https://аpi.openai.com/v1",  # a Cyrillic а
        "https://api。openai。com/v1",
        "https://api.openai.com\t.evil.example/v1",
        "https://api.openai.com:443.evil.example/v1",
        "https:///api.openai.com/v1",
        "https://[api.openai.com]/v1",
    ],
)
def test_what_only_looks_like_openai_does_not_get_its_key(url: str) -> None:
    assert not own("OPENAI_API_KEY", url)
