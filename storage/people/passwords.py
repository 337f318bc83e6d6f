"""Hashing and checking passwords, which are stored only as Argon2id hashes."""

import unicodedata
from functools import cache
from threading import Semaphore

from argon2 import PasswordHasher
from argon2.exceptions import InvalidHashError, VerificationError
from argon2.profiles import RFC_9106_LOW_MEMORY

from stepsight.core.errors import UserError

SHORTEST = 10
"""The minimum length of a password in characters. There is no other rule."""

_HASHER = PasswordHasher.from_parameters(RFC_9106_LOW_MEMORY)
# Each hash takes 64 MiB and all cores; many at once would leave none for anything else.
_AT_ONCE = Semaphore(2)


def hash_password(password: str) -> str:
    """Return the hash to store, including salt and parameters. Raises `UserError` if the password is too short."""
    if len(password) < SHORTEST:
        raise UserError(
            f"The password has {len(password)} characters, expected at least {SHORTEST}.",
            "A sentence is easy to remember and hard to guess.",
        )
    return rehash_password(password)


def rehash_password(password: str) -> str:
    """Hash a password that was accepted before, without checking its length."""
    with _AT_ONCE:
        return _HASHER.hash(_bytes(password))


def is_password(hashed: str | None, password: str) -> bool:
    """True if `hashed` is the hash of this password. If `hashed` is None, return False, but take as long as a real
    check."""
    # Made on the first call in any case, since making it takes as long as a check.
    nobodys = _nobodys()
    with _AT_ONCE:
        try:
            _HASHER.verify(nobodys if hashed is None else hashed, _bytes(password))
        except (VerificationError, InvalidHashError):
            return False
    return hashed is not None


def is_outdated(hashed: str) -> bool:
    """True if the hash was made with parameters that differ from those of new hashes."""
    return _HASHER.check_needs_rehash(hashed)


@cache
def _nobodys() -> str:
    return _HASHER.hash("the password of nobody")


def as_compared(text: str) -> str:
    """Return the form in which a password or the name of a user is compared, NFKC. Keyboards differ in how they
    compose a letter such as ö, and in the width of letters."""
    return unicodedata.normalize("NFKC", text)


def _bytes(password: str) -> bytes:
    return as_compared(password).encode("utf-8", "surrogatepass")
