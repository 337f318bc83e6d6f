"""YAML files without duplicate keys. A file can extend another one, as in this example.

extends: llada-prm-8b.yaml        a file in the same folder, whose values are overridden by those below
batch_size: 64
data: {benchmarks: […]}           nested keys are merged, everything else is replaced
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeVar

import yaml
from yaml.constructor import ConstructorError

from stepsight.core.errors import UserError, located
from stepsight.core.files.whole_files import DEEPEST, read_bytes
from stepsight.core.validation import validate

T = TypeVar("T")

# libyaml's loader, if available, is ten times as fast.
_SAFE: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_EXTENDS = "extends"
# The largest number of keys and items in a file; the content of an anchor counts once for each alias.
_MOST = 100_000


class _Loader(_SAFE):  # type: ignore[misc]
    """A loader that refuses duplicate keys. YAML forbids them, but the library's own loaders use the last value."""

    def construct_mapping(self, node: Any, deep: bool = False) -> Any:
        keys = set()
        for key in (key for key, _ in node.value if isinstance(key, yaml.ScalarNode)):
            if key.value in keys:
                raise ConstructorError(None, None, f"the key {key.value!r:.60} occurs twice", key.start_mark)
            keys.add(key.value)
        return super().construct_mapping(node, deep)


def read_yaml(path: str | Path) -> Any:
    """Read a YAML file and merge it with the files that it extends. Raises `UserError`, with a message that names
    the file, if a file cannot be read, is not YAML, or extends itself."""
    return _read(Path(path), ())


def parse_yaml(text: str) -> Any:
    """Parse YAML within bounds. Raises `UserError` or `ValueError` if the text is not YAML or beyond them."""
    try:
        _check_size(text)
        return yaml.load(text, _Loader)
    except yaml.YAMLError as error:
        raise ValueError(" ".join(str(error).split())) from None


def validate_yaml(kind: type[T], path: str | Path) -> T:
    """Read a YAML file as an instance of `kind`. Raises `UserError`, with a message that names the file and the
    key, if the content does not fit."""
    values = read_yaml(path)
    with located(str(path)):
        return validate(kind, values)


def _read(path: Path, above: tuple[Path, ...]) -> Any:
    try:
        values = parse_yaml(read_bytes(path).decode("utf-8"))
    except OSError as error:
        raise UserError(f"{path}: cannot be read ({error.strerror}).", "Check the path.") from None
    except ValueError as error:
        # The library raises this for impossible dates and numbers, and for bytes that are not base64.
        raise UserError(f"{path}: not YAML ({' '.join(str(error).split())}).") from None
    except UserError as error:
        raise error.at(str(path)) from None
    if not isinstance(values, dict) or _EXTENDS not in values:
        return values
    name = values.pop(_EXTENDS)
    if not isinstance(name, str) or "\0" in name:
        raise UserError(f"{path}: {_EXTENDS} is {name!r:.40}, expected the name of a file in the same folder.")
    other = (path.parent / name).resolve()
    if other in (path.resolve(), *above):
        raise UserError(f"{path}: {_EXTENDS} {name} is circular.", "Remove one of the lines.")
    base = _read(other, (path.resolve(), *above))
    if not isinstance(base, dict):
        raise UserError(
            f"{path}: {_EXTENDS} {name}, which is not a mapping of keys to values.", "Name another file."
        )
    return _merge(base, values)


def _check_size(text: str) -> None:
    """Raise `UserError` if parsing a YAML text could crash the process or use up its memory.

    That is the case if keys and lists are nested so deeply that the library would crash, or if aliases make the
    content infinite or far too large.
    """
    sizes, anchors = [0], [""]
    named: dict[str, int] = {}
    for event in yaml.parse(text, _SAFE):
        if isinstance(event, yaml.CollectionStartEvent):
            sizes.append(1)
            anchors.append(event.anchor or "")
        elif isinstance(event, yaml.CollectionEndEvent):
            named[anchors.pop()] = size = sizes.pop()
            sizes[-1] += size
        elif isinstance(event, yaml.AliasEvent):
            if event.anchor in anchors:
                raise UserError(f"*{event.anchor} refers to a node that contains it.", "Write it out.")
            sizes[-1] += named.get(event.anchor or "", 1)
        elif isinstance(event, yaml.ScalarEvent):
            sizes[-1] += 1
        if len(sizes) > DEEPEST + 1:
            raise UserError(f"keys and lists are nested over {DEEPEST} levels deep.", "Flatten them.")
        if sizes[-1] > _MOST:
            raise UserError(f"over {_MOST:,} keys and items.", "Use fewer aliases.")


def _merge(base: Mapping[Any, Any], values: Mapping[Any, Any]) -> dict[Any, Any]:
    merged = dict(base)
    for key, value in values.items():
        inherited = merged.get(key)
        if isinstance(value, dict) and isinstance(inherited, dict):
            value = _merge(inherited, value)
        merged[key] = value
    return merged
