"""Django's settings, made from the folder of a site and a few options. There is no debug mode."""

from __future__ import annotations

import hashlib
import logging
import os
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

from ragworth.core.cache import settings_folder
from ragworth.core.errors import InputError, quote_short
from ragworth.core.files import private_file, write_output

DATABASE_FILE = "labels.sqlite"
DATABASE_VARIABLE = "RAGWORTH_LABEL_DATABASE"
LOOPBACK = ("127.0.0.1", "localhost", "[::1]")
MAX_UPLOAD = 50 * 2**20
"""Maximum size of an uploaded file, in bytes."""
MAX_REQUEST = 2**20
"""Maximum size of any other request, in bytes."""
MAX_LOGGED = 200
"""Maximum number of characters of a client's text in the log."""
HALF_YEAR = 182 * 24 * 3600

NO_TLS_CHECKS = ["security.W004", "security.W008", "security.W012", "security.W016"]
"""Deployment checks about HTTPS: HSTS, redirects and secure cookies. Without HTTPS they would lock everyone out."""
HSTS_SCOPE_CHECKS = ["security.W005", "security.W021"]
"""HSTS for subdomains and preloading: for the owner of the domain to decide, not for a program that runs on it."""


@dataclass(frozen=True)
class SiteOptions:
    """Where a site keeps its data, and how it is reached.

    Attributes
    ----------
    database: ``postgresql://user:password@host:port/name``; if empty, SQLite in the folder.
    hosts: names under which the site is reached, besides the loopback ones.
    https: whether a proxy in front of the server adds HTTPS.
    """

    database: str = ""
    hosts: tuple[str, ...] = ()
    https: bool = False


def site_settings(folder: Path, options: SiteOptions, key: str) -> dict[str, Any]:
    """All settings of a site; ``key`` signs its sessions."""
    return {
        "DEBUG": False,
        "SECRET_KEY": key,
        "ALLOWED_HOSTS": [*LOOPBACK, *options.hosts],
        "CSRF_TRUSTED_ORIGINS": [f"https://{host}" for host in options.hosts] if options.https else [],
        "ROOT_URLCONF": "ragworth.label.site.urls",
        "AUTH_USER_MODEL": "label.User",
        "DATABASES": {"default": database_settings(folder, options.database)},
        "USE_TZ": True,
        "TIME_ZONE": "UTC",
        "LANGUAGE_CODE": "en",
        "LOGIN_URL": "login",
        "STATIC_URL": "/static/",
        "WHITENOISE_USE_FINDERS": True,
        "WHITENOISE_AUTOREFRESH": False,
        "WHITENOISE_MAX_AGE": 600,
        "DATA_UPLOAD_MAX_MEMORY_SIZE": MAX_REQUEST,
        "FILE_UPLOAD_MAX_MEMORY_SIZE": MAX_REQUEST,
        "FILE_UPLOAD_PERMISSIONS": 0o600,
        "DATA_UPLOAD_MAX_NUMBER_FIELDS": 200,
        "SESSION_COOKIE_HTTPONLY": True,
        "SESSION_COOKIE_SAMESITE": "Lax",
        "SESSION_COOKIE_AGE": 14 * 24 * 3600,
        "CSRF_COOKIE_SAMESITE": "Lax",
        "X_FRAME_OPTIONS": "DENY",
        "SECURE_REFERRER_POLICY": "same-origin",
        "MESSAGE_STORAGE": "django.contrib.messages.storage.session.SessionStorage",
        "RAGWORTH_FOLDER": folder,
        "LOGGING": LOGGING,
        **APPLICATION,
        **_transport_settings(options.https),
    }


APPLICATION: dict[str, Any] = {
    "INSTALLED_APPS": [
        "ragworth.label.site.apps.LabelSiteConfig",
        "django.contrib.auth",
        "django.contrib.contenttypes",
        "django.contrib.sessions",
        "django.contrib.messages",
        "django.contrib.staticfiles",
    ],
    "MIDDLEWARE": [
        "django.middleware.security.SecurityMiddleware",
        "ragworth.label.site.middleware.ContentPolicyMiddleware",
        "whitenoise.middleware.WhiteNoiseMiddleware",
        "django.contrib.sessions.middleware.SessionMiddleware",
        "django.middleware.common.CommonMiddleware",
        "django.middleware.csrf.CsrfViewMiddleware",
        "django.contrib.auth.middleware.AuthenticationMiddleware",
        "django.contrib.messages.middleware.MessageMiddleware",
        "django.middleware.clickjacking.XFrameOptionsMiddleware",
        "ragworth.label.site.middleware.RoleMiddleware",
    ],
    "TEMPLATES": [
        {
            "BACKEND": "django.template.backends.django.DjangoTemplates",
            "APP_DIRS": True,
            "OPTIONS": {
                "context_processors": [
                    "django.template.context_processors.request",
                    "django.contrib.auth.context_processors.auth",
                    "django.contrib.messages.context_processors.messages",
                ]
            },
        }
    ],
    "AUTH_PASSWORD_VALIDATORS": [
        {"NAME": f"django.contrib.auth.password_validation.{name}"}
        for name in ("MinimumLengthValidator", "CommonPasswordValidator", "NumericPasswordValidator")
    ],
}


def _on_one_line(record: logging.LogRecord) -> bool:
    """Shorten a record whose text is the client's, and leave out where in the program it was noticed."""
    record.msg, record.args, record.exc_info = quote_short(record.getMessage(), MAX_LOGGED), (), None
    return True


LOGGING: dict[str, Any] = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {"plain": {"format": "{asctime} {levelname} {message}", "style": "{"}},
    "filters": {"one line": {"()": "django.utils.log.CallbackFilter", "callback": _on_one_line}},
    "handlers": {
        "stderr": {"class": "logging.StreamHandler", "formatter": "plain"},
        "line": {"class": "logging.StreamHandler", "formatter": "plain", "filters": ["one line"]},
    },
    "loggers": {
        # Requests that no page of the site sends, such as one for a name that the site doesn't have.
        "django.security": {"handlers": ["line"], "level": "ERROR", "propagate": False},
        "django": {"handlers": ["stderr"], "level": "ERROR", "propagate": False},
        # Says with every request that others wait.
        "waitress.queue": {"level": "ERROR"},
    },
}


def _transport_settings(https: bool) -> dict[str, Any]:
    """What depends on HTTPS: secure cookies, redirects, and the deployment checks that make no sense without it."""
    return {
        "SESSION_COOKIE_SECURE": https,
        "CSRF_COOKIE_SECURE": https,
        "SECURE_SSL_REDIRECT": https,
        "SECURE_HSTS_SECONDS": HALF_YEAR if https else 0,
        "SILENCED_SYSTEM_CHECKS": HSTS_SCOPE_CHECKS if https else NO_TLS_CHECKS,
    }


def database_settings(folder: Path, address: str) -> dict[str, Any]:
    """SQLite in the folder, or the PostgreSQL database at an address."""
    if not address:
        private_file(folder / DATABASE_FILE)
        return {
            "ENGINE": "django.db.backends.sqlite3",
            "NAME": str(folder / DATABASE_FILE),
            "CONN_MAX_AGE": 600,
            # A transaction takes the write lock when it starts, so two of them never wait for each other. With
            # synchronous=FULL a stored answer survives a power cut, not only a killed process.
            "OPTIONS": {
                "timeout": 30,
                "transaction_mode": "IMMEDIATE",
                "init_command": "PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL;",
            },
        }
    parts = urlsplit(address)
    if parts.scheme not in ("postgresql", "postgres") or not parts.path.strip("/"):
        raise InputError(
            f"the database is {quote_short(f'{parts.scheme}://…')}",
            expected="postgresql://user:password@host:port/name",
            remedy=f"correct --database or {DATABASE_VARIABLE}; without them, SQLite is used",
        )
    return {
        "ENGINE": "django.db.backends.postgresql",
        "NAME": unquote(parts.path.strip("/")),
        "USER": unquote(parts.username or ""),
        "PASSWORD": unquote(parts.password or ""),
        "HOST": unquote(parts.hostname or ""),
        "PORT": str(parts.port or ""),
        "CONN_MAX_AGE": 600,
        "CONN_HEALTH_CHECKS": True,
        "OPTIONS": dict(parse_qsl(parts.query)),
    }


def key_file(folder: Path) -> Path:
    """Where this user keeps the key of a site: not in its folder, which may come from somebody else."""
    name = hashlib.sha256(os.fsencode(folder.resolve())).hexdigest()[:32]
    return settings_folder() / "label-keys" / f"{name}.key"


def read_key(folder: Path) -> str:
    """The key that signs sessions; empty if this user hasn't opened the site at this path before."""
    with suppress(FileNotFoundError):
        return key_file(folder).read_text(encoding="ascii").strip()
    return ""


def keep_key(folder: Path, key: str) -> None:
    write_output(key_file(folder), key.encode())
