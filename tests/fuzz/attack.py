"""An attack on a reader: it reads many damaged files, and answers each with what it read or with a `UserError`."""

import os
import random
from collections.abc import Callable

from stepsight.core.errors import UserError
from tests.seeds import chance

COUNT = int(os.environ.get("STEPSIGHT_FUZZ", "40"))

Damage = Callable[[bytes, random.Random], bytes]


def attack(name, sound, path, read, *ways, count=COUNT):
    """Have a reader read `count` damaged files; the sound one has to be read."""
    path.write_bytes(sound)
    read(path)
    messages = []
    for number in range(count):
        rng = chance(f"{name}:{number}")
        path.write_bytes(rng.choice(ways)(sound, rng))
        try:
            read(path)
        except UserError as error:
            messages.append(str(error))
        except Exception as error:
            raise AssertionError(f"{name}, input {number}: {type(error).__name__}: {error}") from error
    path.write_bytes(sound)
    check_messages(name, messages)
    # Damage that no reader minds would prove nothing.
    assert len(messages) > count / 20, (name, len(messages))


def check_messages(name, messages):
    """Each is there, of a bounded length, and no traceback."""
    assert all(0 < len(message) <= 4000 and "Traceback" not in message for message in messages), name
