"""The tables of users and their logins."""

from datetime import datetime

from sqlalchemy import CheckConstraint, ForeignKey, Index, LargeBinary, String, Text
from sqlalchemy.orm import Mapped, mapped_column

from stepsight.storage.database.schema import DIGEST_LENGTH, NAME_LENGTH, Base, UtcDateTime, now


class UserRow(Base):
    """A user.

    `password` is a password hash with its parameters. It is NULL for the local user of a server without user
    accounts, who cannot log in. `ended` is when the user was deactivated; the row is kept because the user's work
    is kept.
    """

    __tablename__ = "users"

    id: Mapped[int] = mapped_column(primary_key=True)
    name: Mapped[str] = mapped_column(String(NAME_LENGTH), unique=True)
    role: Mapped[str] = mapped_column(String(20))
    password: Mapped[str | None] = mapped_column(Text)
    created: Mapped[datetime] = mapped_column(UtcDateTime, default=now)
    ended: Mapped[datetime | None] = mapped_column(UtcDateTime)
    last_login: Mapped[datetime | None] = mapped_column(UtcDateTime)

    __table_args__ = (CheckConstraint("role IN ('viewer', 'annotator', 'adjudicator', 'admin')", name="role"),)


class ServerSecretRow(Base):
    """A random secret of the server, created on first use. Only backups carry it out of the database."""

    __tablename__ = "server_secrets"

    name: Mapped[str] = mapped_column(String(20), primary_key=True)
    secret: Mapped[bytes] = mapped_column(LargeBinary)


class LoginRow(Base):
    """A browser session of a logged-in user. Its cookie holds a secret, of which only a hash is stored."""

    __tablename__ = "logins"

    digest: Mapped[str] = mapped_column(String(DIGEST_LENGTH), primary_key=True)
    user_id: Mapped[int] = mapped_column(ForeignKey("users.id", ondelete="CASCADE"))
    created: Mapped[datetime] = mapped_column(UtcDateTime, default=now)
    expires: Mapped[datetime] = mapped_column(UtcDateTime)

    __table_args__ = (Index("ix_logins_user_id", "user_id"),)


class FailedLoginRow(Base):
    """A failed login, counted under `key`, which stands for a user name, a network address, or both."""

    __tablename__ = "failed_logins"

    id: Mapped[int] = mapped_column(primary_key=True)
    key: Mapped[str] = mapped_column(String(NAME_LENGTH))
    moment: Mapped[datetime] = mapped_column(UtcDateTime, default=now)

    __table_args__ = (Index("ix_failed_logins_key", "key", "moment"),)


class HomeRow(Base):
    """A network address from which a user has logged in. `key` is a hash of the user name together with the
    address."""

    __tablename__ = "homes"

    key: Mapped[str] = mapped_column(String(NAME_LENGTH), primary_key=True)
    moment: Mapped[datetime] = mapped_column(UtcDateTime, default=now)
