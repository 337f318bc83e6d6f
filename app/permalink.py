"""A Score page in its address: problem, solution and settings, compressed."""

import base64
import binascii
import json
import zlib
from dataclasses import asdict, dataclass

from core.errors import UserError

# Servers and browsers refuse much longer addresses.
_LONGEST = 16_000
_LONGEST_TEXT = 1_000_000


@dataclass(frozen=True)
class ScoreForm:
    """What a person entered on the Score page."""

    problem: str = ""
    solution: str = ""
    evaluator: str = ""
    validity: float = 0.5
    redundancy: float = 0.15

    def token(self) -> str | None:
        """The form as text for an address, or None where it would be too long for one."""
        packed = zlib.compress(json.dumps(list(asdict(self).values()), ensure_ascii=False).encode(), 9)
        token = base64.urlsafe_b64encode(packed).decode().rstrip("=")
        return token if len(token) <= _LONGEST else None

    @classmethod
    def from_token(cls, token: str) -> "ScoreForm":
        """The inverse of `token`. Raises `UserError` where the text was cut or changed."""
        try:
            packed = base64.urlsafe_b64decode(token + "=" * (-len(token) % 4))
            text = zlib.decompressobj().decompress(packed, _LONGEST_TEXT)
            problem, solution, evaluator, validity, redundancy = json.loads(text)
            form = cls(str(problem), str(solution), str(evaluator), float(validity), float(redundancy))
            # JSON can spell half of a surrogate pair, which no page can show.
            f"{form.problem}{form.solution}{form.evaluator}".encode()
        except (binascii.Error, zlib.error, ValueError, TypeError, OverflowError, RecursionError):
            raise UserError("This link was cut or changed.", "Ask for it again, or paste the solution.") from None
        if not (0 <= form.validity <= 1 and 0 <= form.redundancy <= 1):
            raise UserError("This link holds a threshold outside 0 to 1.", "Paste the solution instead.")
        return form
