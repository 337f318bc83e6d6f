"""The error that a user can cause: a message, and a hint for mending it."""


class UserError(Exception):
    """A mistake of the user, shown without a traceback.

    `message` says where, what was found and what was expected; `hint` says how to put it right. The command line
    prints `str(error)` and exits with 2; a page shows it as a notice.
    """

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint

    def __str__(self) -> str:
        return f"{self.message} {self.hint}".strip()

    def at(self, where: str) -> "UserError":
        """The same error with a place put before it, such as `file.jsonl line 3`."""
        return UserError(f"{where}: {self.message}", self.hint)
