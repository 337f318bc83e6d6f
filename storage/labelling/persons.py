"""The people whom a file of labels names."""

from sqlalchemy import select
from sqlalchemy.orm import Session

from storage.names import check_name
from storage.people.tables import UserRow
from storage.people.users import LOCAL, Role
from storage.upsert import insert_once


class Persons:
    """Finds people by name within a transaction. One who is missing is made, without a password: an annotator who
    cannot log in until somebody gives them one."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._ids: dict[str, int] = {}

    def id(self, name: str) -> int:
        """The database id of the person of that name. Raises `UserError` where it cannot be one."""
        if name not in self._ids:
            check_name(name, "the name of a person")
            found = select(UserRow.id).where(UserRow.name == name)
            if (known := self._session.scalar(found)) is None:
                role = Role.ADMIN if name == LOCAL else Role.ANNOTATOR
                insert_once(self._session, UserRow, [{"name": name, "role": role.value}], "name")
                known = self._session.scalars(found).one()
            self._ids[name] = known
        return self._ids[name]
