"""The API's OpenAPI document as a plain page: every route, what it takes, what it gives."""

import json
from collections.abc import Iterator, Mapping
from html import escape
from typing import Any

from stepsight.app.web.frame import plain_page

Document = Mapping[str, Any]


def description_html(document: Document, prefix: str) -> str:
    """A page that loads nothing from elsewhere. `prefix` is where the API is mounted."""
    routes = "".join(
        _route(document, f"{prefix}{path}", method, route)
        for path, methods in document["paths"].items()
        for method, route in methods.items()
    )
    schemas = document["components"]["schemas"]
    shapes = "".join(_shape(name, schema) for name, schema in sorted(schemas.items()))
    info = document["info"]
    return plain_page(
        "API",
        f"""<h1>HTTP API</h1><p class="lead">{_prose(info["description"])} Everything is JSON, an account is
needed only where people log in, and a request holds at most 1 MB.
<a href="{escape(prefix)}/openapi.json">The same as OpenAPI</a>.</p>
<section class="api">{routes}<h2>Objects</h2>{shapes}</section>""",
    )


def _route(document: Document, path: str, method: str, route: Document) -> str:
    body = route.get("requestBody", {}).get("content", {}).get("application/json", {}).get("schema")
    parameters = "".join(
        _line(f"{item['name']} ({item['in']})", item["schema"], item.get("description", ""), item.get("required"))
        for item in route.get("parameters", [])
    )
    good = next(status for status in route["responses"] if status.startswith("2"))
    answer = route["responses"][good]["content"]["application/json"]["schema"]
    example = _example(document, path, method, body)
    return f"""<article class="card">
<h2><span class="method">{method.upper()}</span> <code>{escape(path)}</code></h2>
<p>{_prose(route["summary"])}. {_prose(route.get("description", ""))}</p>
{f'<table class="table"><tbody>{parameters}</tbody></table>' if parameters else ""}
<p class="hint">{f"Takes {_type(body)}. " if body else ""}Gives {_type(answer)} with status {good}.</p>
{example}</article>"""


def _shape(name: str, schema: Document) -> str:
    needed = schema.get("required", [])
    lines = "".join(
        _line(key, value, value.get("description", ""), key in needed)
        for key, value in schema.get("properties", {}).items()
    )
    content = f'<table class="table"><tbody>{lines}</tbody></table>' if lines else f"<p>{_type(schema)}</p>"
    return f"""<article class="card" id="{escape(name)}"><h3>{escape(name)}</h3>
<p>{_prose(schema.get("description", ""))}</p>{content}</article>"""


def _line(name: str, schema: Document, description: str, required: object) -> str:
    default = schema.get("default")
    told = f"default {json.dumps(default)}" if default not in (None, "") else "" if required else "optional"
    return f"""<tr><th scope="row"><code>{escape(name)}</code></th><td>{_type(schema)}</td>
<td>{_prose(description)} <span class="hint">{escape(told)}</span></td></tr>"""


def _type(schema: Document) -> str:
    if "$ref" in schema:
        name = escape(schema["$ref"].rpartition("/")[2])
        return f'<a href="#{name}">{name}</a>'
    if "anyOf" in schema:
        return " or ".join(_type(option) for option in schema["anyOf"])
    if "enum" in schema:
        return " | ".join(escape(json.dumps(value)) for value in schema["enum"])
    if schema.get("type") == "array":
        return f"list of {_type(schema.get('items', {}))}"
    return escape(str(schema.get("type", "any")))


def _example(document: Document, path: str, method: str, body: Document | None) -> str:
    if body is None:
        return ""
    schema = document["components"]["schemas"][body["$ref"].rpartition("/")[2]]
    values = {key: value["examples"][0] for key, value in schema["properties"].items() if "examples" in value}
    if not values:
        return ""
    return f"""<pre tabindex="0">curl -X {method.upper()} http://127.0.0.1:7860{escape(path)} \\
  -H 'Content-Type: application/json' \\
  -d '{escape(json.dumps(values))}'</pre>"""


def _prose(text: str) -> str:
    return "".join(_coded(" ".join(text.split())))


def _coded(text: str) -> Iterator[str]:
    """Escaped, with what stands between backticks as code."""
    for number, part in enumerate(text.split("`")):
        yield f"<code>{escape(part)}</code>" if number % 2 else escape(part)
