"""Serve a site with Waitress."""

from __future__ import annotations

import ipaddress
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ragworth.core.errors import InputError, MissingExtraError
from ragworth.label.site.settings import MAX_UPLOAD, SiteOptions
from ragworth.label.site.startup import open_site

OWNER_NAME = "owner"
THREADS = 8
ANY = ("0.0.0.0", "::", "")
"""Hosts that stand for all addresses of the machine."""


@dataclass(frozen=True)
class ServerOptions:
    """How a site is served.

    Attributes
    ----------
    host, port: where the server listens; port 0 takes a free one.
    names: other names under which people reach it.
    https: a proxy at ``proxy`` adds HTTPS.
    plain_http: allow other machines without HTTPS.
    """

    host: str = "127.0.0.1"
    port: int = 8765
    names: tuple[str, ...] = ()
    https: bool = False
    plain_http: bool = False
    proxy: str = "127.0.0.1"
    database: str = ""
    threads: int = THREADS

    @property
    def is_local(self) -> bool:
        """Whether only this machine reaches the server, without a proxy."""
        return not self.https and not self.names and is_loopback(self.host)


class SiteServer:
    """A server that listens, and the link by which its owner gets in."""

    def __init__(self, folder: Path, options: ServerOptions) -> None:
        check_options(options)
        hosts = [*map(host_of, options.names), *([] if options.host in ANY else [bracketed(options.host)])]
        open_site(folder, SiteOptions(options.database, tuple(hosts), options.https))
        self.options = options
        self._server = _listen(options)
        self.link = self._owner_link()

    @property
    def address(self) -> str:
        """Where the site is, for people."""
        if self.options.https and self.options.names:
            return f"https://{self.options.names[0]}"
        name = self.options.names[0] if self.options.names else bracketed(self.options.host)
        return f"http://{name}" if host_of(name) != name else f"http://{name}:{self._server.effective_port}"

    def run(self) -> None:
        """Serve until interrupted."""
        self._server.run()

    def close(self) -> None:
        self._server.close()

    def _owner_link(self) -> str:
        """A one-time link for this machine; from other machines, an invitation until the owner has a password."""
        from ragworth.label.site.links import create_link
        from ragworth.label.site.models import AccessLink

        owner = find_owner()
        if self.options.is_local:
            return f"{self.address}/start/{create_link(AccessLink.START, owner)}/"
        if owner.has_usable_password():
            return ""
        return f"{self.address}/join/{create_link(AccessLink.INVITATION, owner)}/"


def find_owner() -> Any:
    """The first owner; created if there is none."""
    from ragworth.label.site.models import OWNER, User

    owner = User.objects.filter(role=OWNER, is_active=True).order_by("id").first()
    return owner or User.objects.create_user(OWNER_NAME, OWNER)


def is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return host == "localhost"


def bracketed(host: str) -> str:
    """A host as addresses have it: an IPv6 address is in brackets."""
    return f"[{host}]" if ":" in host and not host.startswith("[") else host


def host_of(name: str) -> str:
    """A name without its port."""
    return re.sub(r":\d+$", "", name) if name.startswith("[") or name.count(":") == 1 else bracketed(name)


def check_options(options: ServerOptions) -> None:
    """Refuse to send passwords in the clear unless that is wanted, and to listen where no request could be answered."""
    if options.host in ANY and not options.names:
        raise InputError(
            f"the host is {options.host or 'empty'}, and nothing says under which name people reach the site",
            expected="a name or address with --name",
            remedy="add it, such as --name label.example.org or --name 192.168.1.20; other names are refused",
        )
    if is_loopback(options.host) or options.https or options.plain_http:
        return
    raise InputError(
        f"with the host {options.host}, other machines would send passwords without encryption",
        remedy="put a proxy with HTTPS before the server and use --https, or accept it with --plain-http",
    )


def _listen(options: ServerOptions) -> Any:
    try:
        from waitress import create_server
    except ImportError as error:
        raise MissingExtraError("waitress", "label", "the labelling site") from error
    from django.core.wsgi import get_wsgi_application

    proxy: dict[str, Any] = {}
    if options.https:
        headers = {"x-forwarded-proto", "x-forwarded-for"}
        proxy = {"trusted_proxy": options.proxy, "trusted_proxy_headers": headers}
    try:
        return create_server(
            get_wsgi_application(),
            host=options.host,
            port=options.port,
            threads=options.threads,
            ident=None,
            clear_untrusted_proxy_headers=True,
            max_request_body_size=MAX_UPLOAD + 2**20,
            **proxy,
        )
    except OSError as error:
        raise InputError(
            f"the server can't listen on {options.host}, port {options.port}: {error.strerror or error}",
            remedy="stop the program that uses it, or choose another port with --port",
        ) from error
