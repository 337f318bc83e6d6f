"""The API's OpenAPI document as a plain page."""

import json
from collections.abc import Mapping
from functools import partial
from typing import Any

from markupsafe import Markup

from stepsight.app.web.html import render

Document = Mapping[str, Any]


def description_html(document: Document, prefix: str) -> Markup:
    """Every route, what it takes and gives. `prefix` is where the API is mounted."""
    return render(
        "api/description.html",
        document=document,
        prefix=prefix,
        json=json.dumps,
        example=partial(_example, document),
    )


def _example(document: Document, body: Document | None) -> dict[str, Any]:
    """An example of a request's body, of the fields that have one."""
    if body is None:
        return {}
    schema = document["components"]["schemas"][body["$ref"].rpartition("/")[2]]
    return {key: value["examples"][0] for key, value in schema["properties"].items() if "examples" in value}
