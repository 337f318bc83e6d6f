"""The address of an evaluator behind a server: the kind of server, its URL, and the model's name there.

    vllm:http://HOST:8000/v1#MODEL
    critic:https://HOST/v1#MODEL,samples=8

Options follow the model's name. An API key is never part of the address.
"""

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from stepsight.core.errors import UserError

VLLM, CRITIC = "vllm", "critic"

KEY = "STEPSIGHT_API_KEY"
"""The environment variable with the key for a server."""

_KINDS = (VLLM, CRITIC)
_EXAMPLE = {
    VLLM: "vllm:http://localhost:8000/v1#Qwen/Qwen2.5-Math-PRM-7B",
    CRITIC: "critic:http://localhost:8000/v1#Qwen/Qwen3-8B",
}
# Any other comma belongs to the name or the value before it.
_OPTION = re.compile(r",(?=[a-z_]+=)")


@dataclass(frozen=True)
class ServerAddress:
    """The address of an evaluator behind a server.

    `url` is the base of the OpenAI-style routes, without a trailing slash. `model` is the model's name on the
    server, and `options` holds the options in the order in which they follow that name.
    """

    kind: str
    url: str
    model: str
    options: Mapping[str, str] = field(default_factory=dict)

    def __str__(self) -> str:
        options = "".join(f",{name}={value}" for name, value in self.options.items())
        return f"{self.kind}:{self.url}#{self.model}{options}"

    def __hash__(self) -> int:
        return hash(str(self))

    def check_options(self, allowed: Collection[str]) -> None:
        """Raise `UserError` if the address has an option that is not in `allowed`."""
        for name in self.options:
            if name not in allowed:
                names = ", ".join(sorted(allowed)) or "none"
                raise UserError(f"{self}: there is no option {name!r}.", f"The options are: {names}.")


def is_critic(spec: str) -> bool:
    """True if this is the address of a critic."""
    return spec.startswith(f"{CRITIC}:")


def is_address(spec: object) -> bool:
    """True if the text looks like the address of an evaluator behind a server. The address may be invalid."""
    return str(spec).startswith(tuple(f"{kind}:" for kind in _KINDS))


def parse_address(spec: str) -> ServerAddress:
    """Parse the text of an address. Raises `UserError` if it is invalid. The message never repeats a URL that
    contains a password."""
    kind, _, rest = spec.partition(":")
    if kind not in _KINDS:
        raise UserError(f"{spec!r:.100} is not the address of a server.", f"Write it like {_EXAMPLE[VLLM]}.")
    url, _, named = rest.partition("#")
    hint = f"Write it like {_EXAMPLE[kind]}."
    url = checked_url(url, hint, KEY)
    if re.search(r"[\x00-\x1f\x7f]", named):
        raise UserError(f"the model name after {url} contains control characters.", hint)
    model, *options = _OPTION.split(named)
    if not model.strip():
        raise UserError(f"{kind}:{url}: the model name is missing.", f"Put it after a #. {hint}")
    pairs = [option.partition("=") for option in options]
    names = [name for name, _, _ in pairs]
    for name, _, value in pairs:
        if names.count(name) > 1 or not value:
            fault = "is given twice" if value else "has no value"
            raise UserError(f"{kind}:{url}#{model}: the option {name!r} {fault}.", "Give it once: NAME=VALUE.")
    return ServerAddress(kind, url, model.strip(), {name: value for name, _, value in pairs})


def checked_url(url: str, hint: str, key_variable: str) -> str:
    """Return the URL of a server without a trailing slash.

    Raises `UserError` with the given `hint` if the URL is invalid or contains a password. The message does not
    repeat the password; API keys belong in the environment variable `key_variable`.
    """
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
        secret = parts.username is not None or parts.password is not None
    except ValueError:
        raise UserError("the address of the server is not a URL.", hint) from None
    if secret or "@" in parts.netloc:
        raise UserError(
            "the address of the server contains a user name or a password.",
            f"Leave them out, because addresses are shown and stored. Put keys into {key_variable}.",
        )
    if parts.scheme not in ("http", "https"):
        raise UserError(
            f"{url!r:.100} is not the address of a server: it does not begin with http:// or https://.", hint
        )
    if not host or re.search(r"[\s\x00-\x1f\x7f]", url):
        raise UserError(f"{url!r:.100} is not the address of a server: it names no host.", hint)
    if parts.query:
        raise UserError("the address of the server contains a question mark.", hint)
    name = f"[{host}]" if ":" in host else host
    return f"{parts.scheme}://{name}" + (f":{port}" if port is not None else "") + parts.path.rstrip("/")
