"""A secret of the server that keeps derived values unpredictable even to people who know all ids, names and seeds.

The secret is created on first use, kept in the store and its backups, and never shown.
"""

import hmac
import secrets
from collections.abc import Iterable
from hashlib import sha256

from sqlalchemy import select
from sqlalchemy.orm import Session

from stepsight.storage.database.schema import ServerSecretRow
from stepsight.storage.database.store import Store

_NAME = "pseudonyms"
_BYTES = 32
_WANTED = select(ServerSecretRow.secret).where(ServerSecretRow.name == _NAME)


def read_secret(store: Store) -> bytes:
    """Return the secret, creating it if there is none yet."""
    with store.read() as session:
        secret = session.scalar(_WANTED)
    if secret is not None:
        return secret
    with store.write() as session:
        return load_secret(session)


def load_secret(session: Session) -> bytes:
    """Like `read_secret`, but within a writing session."""
    secret = session.scalar(_WANTED)
    if secret is None:
        secret = secrets.token_bytes(_BYTES)
        session.add(ServerSecretRow(name=_NAME, secret=secret))
    return secret


def keyed_digest(secret: bytes, *about: object) -> bytes:
    """Return a digest of `about`, keyed with the secret. Equal values give equal digests, which reveal nothing
    about the values."""
    return hmac.digest(secret, " ".join(map(str, about)).encode(), sha256)


def shuffle_people(store: Store, user_ids: Iterable[int], *about: object) -> list[int]:
    """Return user ids in a random order that is always the same for the same values of `about`, such as a campaign
    id. Orders for different values of `about` are unrelated, and an order reveals nothing about the users."""
    secret = read_secret(store)
    return sorted(set(user_ids), key=lambda user_id: keyed_digest(secret, *about, user_id))
