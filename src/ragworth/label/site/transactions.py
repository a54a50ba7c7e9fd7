"""Transactions that write. On SQLite, the threads of a server take turns.

SQLite lets one connection write at a time. Others poll with ever longer pauses and in no order, so under load one of
them can wait until it gives up ("database is locked"). A lock of our own hands over at once.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext

from django.db import connection, transaction

_turn = threading.RLock()


@contextmanager
def writing() -> Iterator[None]:
    """A transaction that writes; inside another one, a part of it. Also a decorator: ``@writing()``."""
    with nullcontext() if locks_rows() else _turn, transaction.atomic(savepoint=False):
        yield


def writing_together(*, waiting: bool) -> AbstractContextManager[None]:
    """One transaction, and so one wait for the disk, for several steps.

    ``waiting``: more than one step waits for locked rows. A database that locks rows then keeps a transaction for each
    step; otherwise two people could wait for each other's items.
    """
    return nullcontext() if waiting and locks_rows() else writing()


def locks_rows() -> bool:
    """Whether the database locks single rows (PostgreSQL) rather than everything (SQLite)."""
    return bool(connection.features.has_select_for_update)
