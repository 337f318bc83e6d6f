"""People who log in, for the tests of users and logins."""

from functools import cache

from stepsight.storage.database.schema import UserRow
from stepsight.storage.people.users import Role, hash_password, user_of_row

PASSWORD = "correct horse"


@cache
def _hashed():
    return hash_password(PASSWORD)


def user(store, name="ada", role=Role.ANNOTATOR):
    """A new person with `PASSWORD`, which is hashed once for all of them."""
    with store.write() as session:
        row = UserRow(name=name, role=role.value, password=_hashed())
        session.add(row)
        session.flush()
        return user_of_row(row)
