"""HTML read as a browser would, and held to what our pages may contain."""

import re
from dataclasses import dataclass, field
from html.parser import HTMLParser

from stepsight.storage.importers.catalogue import benchmarks

_VOID = {"input", "br", "wbr"}
_INSIDE = ("/", "#", "data:application/json;")
# Only to where a benchmark was published, and without saying from where.
_SOURCES = {benchmark.source for benchmark in benchmarks()}
_ALLOWED = {
    "a", "aside", "b", "bdi", "br", "button", "caption", "circle", "code", "datalist", "dd", "details", "div", "dl",
    "dt", "em", "fieldset", "figcaption", "figure", "form", "g", "h1", "h2", "h3", "header", "i", "input", "kbd",
    "label", "legend", "li", "line", "main", "mark", "nav", "ol", "optgroup", "option", "output", "p", "path",
    "polyline", "pre", "rect", "s", "section", "select", "small", "span", "strong", "summary", "svg", "table",
    "tbody", "td", "template", "text", "textarea", "th", "thead", "time", "title", "tr", "ul", "wbr",
}  # fmt: skip
# A browser closes a paragraph at one of these.
_ENDS_PARAGRAPH = {
    "aside", "details", "div", "dl", "fieldset", "figure", "form", "h1", "h2", "h3", "header", "main", "nav", "ol",
    "p", "pre", "section", "table", "ul",
}  # fmt: skip


@dataclass
class Element:
    """An element with its attributes, the elements in it, and all text in it."""

    tag: str
    attributes: dict[str, str | None]
    children: list["Element"] = field(default_factory=list)
    text: str = ""
    parts: list["Element | str"] = field(default_factory=list)
    """The elements in it and the texts between them, in order."""

    def all(self, tag: str = "", **attributes: str | None) -> list["Element"]:
        """Every element below that has the tag and attributes.

        `cls` is one of its classes, `data_x` is data-x, None stands for an attribute without a value.
        """
        found = [child for child in self.children if child._fits(tag, attributes)]
        for child in self.children:
            found += child.all(tag, **attributes)
        return found

    def one(self, tag: str = "", **attributes: str | None) -> "Element":
        (found,) = self.all(tag, **attributes)
        return found

    def __getitem__(self, name: str) -> str:
        value = self.attributes[name]
        assert value is not None, f"{name} of {self.tag} has no value"
        return value

    def _fits(self, tag: str, attributes: dict[str, str | None]) -> bool:
        if tag and self.tag != tag:
            return False
        for name, value in attributes.items():
            if name == "cls":
                if value not in (self.attributes.get("class") or "").split():
                    return False
            elif self.attributes.get(name.replace("_", "-"), "") != value:
                return False
        return True


class _Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.open = [Element("", {})]

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        assert tag in _ALLOWED, f"<{tag}> has no place on our pages"
        in_paragraph = any(element.tag == "p" for element in self.open)
        assert not (in_paragraph and tag in _ENDS_PARAGRAPH), f"<{tag}> stands in a paragraph"
        names = [name for name, _ in attributes]
        assert len(set(names)) == len(names), f"<{tag}> has an attribute twice: {names}"
        for name, value in attributes:
            assert not name.startswith("on"), f"<{tag} {name}> would run a script"
            assert name not in ("href", "src") or _may_lead(tag, value or "", dict(attributes)), value
        element = Element(tag, dict(attributes))
        self.open[-1].children.append(element)
        self.open[-1].parts.append(element)
        if tag not in _VOID:
            self.open.append(element)

    def handle_endtag(self, tag: str) -> None:
        assert self.open[-1].tag == tag, f"</{tag}> closes <{self.open[-1].tag}>"
        self.open.pop()

    def handle_data(self, data: str) -> None:
        for element in self.open:
            element.text += data
        self.open[-1].parts.append(data)

    def unexpected(self, data: str) -> None:
        raise AssertionError(f"neither text nor element: {data!r}")

    handle_comment = handle_decl = handle_pi = unknown_decl = unexpected


def _may_lead(tag, address, attributes):
    """Whether an element may have this address."""
    outside = tag == "a" and attributes.get("rel") == "noreferrer" and address in _SOURCES
    return address.startswith(_INSIDE) or outside


def read(html):
    """The elements of a piece of HTML.

    Raises `AssertionError` where they do not nest, or where there is one that our pages never make, an
    attribute that runs a script, or a link to elsewhere: injected markup would have to be one of these.
    """
    reader = _Reader()
    # A `Markup` would escape the pieces that the parser puts together.
    reader.feed(str(html))
    reader.close()
    assert len(reader.open) == 1, f"<{reader.open[-1].tag}> is not closed"
    return reader.open[0]


# What stands in the line of the element that it is in, in braces, unless there is something else in it.
_INLINE = {
    "a", "b", "bdi", "br", "button", "circle", "code", "em", "g", "i", "input", "kbd", "line", "mark", "option",
    "output", "path", "polyline", "rect", "s", "select", "small", "span", "strong", "summary", "svg", "td", "text",
    "th", "time", "title", "wbr",
}  # fmt: skip
# Where things are drawn is for the tests of the drawings, and how a hint is opened is the same for each of them.
_LEFT_OUT = {
    "d", "points", "x", "y", "x1", "x2", "y1", "y2", "cx", "cy", "r", "width", "height", "viewbox", "transform",
    "popovertarget", "popovertargetaction", "aria-describedby",
}  # fmt: skip
# The address of a result, and the version of a file.
_TOKEN = re.compile(r"\b(s|before|kept)=[\w-]{20,}|(?<=\?)(v)=[\w.]+")


def outline(html):
    """A piece of HTML as lines: an element a line, with its class, where it leads, what it is called, its other
    attributes, and the text and the small elements in it, each in braces."""
    return "\n".join(_lines(read(html), 0))


def _lines(element, depth):
    head = _head(element)
    line, below = [head], depth + bool(head)
    for part in element.parts:
        if isinstance(part, str) or _is_inline(part):
            line.append(_inline(part))
        else:
            yield from _line(line, depth)
            yield from _lines(part, below)
            line, depth = [], below
    yield from _line(line, depth)


def _line(texts, depth):
    if text := " ".join("".join(texts).split()):
        yield f"{'  ' * depth}{text}"


def _is_inline(element):
    return element.tag in _INLINE and all(map(_is_inline, element.children))


def _inline(part):
    if isinstance(part, str):
        return part
    return f"{{{' '.join((_head(part) + ''.join(map(_inline, part.parts))).split())}}}"


def _head(element):
    """The tag, unless the class says as much, and the attributes."""
    values = {name: value for name, value in element.attributes.items() if name not in _LEFT_OUT}
    classes = "".join(f".{name}" for name in (values.pop("class", "") or "").split())
    target, label = values.pop("href", None), values.pop("aria-label", None)
    if label is not None and values.get("title") == label:
        del values["title"]
    said = [
        *([f"-> {target}"] if target is not None else []),
        *([f"({label})"] if label is not None else []),
        *(name if value is None else f"{name}={value!r}" for name, value in values.items()),
    ]
    tag = "" if classes and element.tag in ("div", "span") else element.tag
    if not (classes or said) and element.tag in _PLAIN:
        return ""
    return _TOKEN.sub(r"\1\2=TOKEN", " ".join([f"{tag}{classes}", *said])) + " "


# Without attributes these say nothing.
_PLAIN = {"", "div", "span", "tbody", "thead", "ul", "ol", "dl", "g"}

INJECTIONS = [
    "<script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    '"><svg onload=alert(1)>',
    "' onmouseover='alert(1)",
    '" onfocus="alert(1)" autofocus="',
    "</textarea></li></ol></section><iframe src=javascript:alert(1)>",
    "<!-- -->",
    "<![CDATA[x]]>",
    "<?php echo 1 ?>",
    "&lt;b&gt; &amp; &#60;",
    "$<img src=x onerror=alert(1)>$",
    '$x" onmouseover="alert(1)$',
    "\\[</span><script>alert(1)</script>\\]",
    "$$'><style>*{display:none}</style>$$",
    "\\begin{align}<base href=//evil.example>\\end{align}",
    "\\href{javascript:alert(1)}{x}",
    "${alert(1)} {{alert(1)}} {% x %}",
    "<a href='javascript:alert(1)'>x</a>",
]
"""Texts that would be markup, a script or a template if they were not escaped."""

INJECTION = """'"><img src=x onerror=alert(1)></textarea></li> &lt;b&gt; ${x} {{x}} $x" onload="x$"""
"""One text that would be all of these, short enough for a name."""
