"""The manual as the server shows it."""

import re

import pytest

from stepsight.app.web.help import MANUAL, document_html, list_pages
from tests.app.elements import read

TEXT = """# Title

A *word*, **bold**, `code *with* [signs](x.md)` & <b>, in [Score](score.md#from-a-file), [here](#title),
[out](../README.md).

- One
  goes on.
- Two, `a|b`.

| a | b |
|---|---|
| 1 | `x` |

    stepsight score

```python
print("<x>")
```
"""


def test_a_page_of_the_manual_is_rendered_with_its_links_inside():
    html = document_html(TEXT)
    page = read(html)
    # An anchor of the title would be taken for a part of the page that it is called after.
    assert page.one("h1").attributes == {}
    assert [link["href"] for link in page.all("a")] == ["/help/score#from-a-file", "#title"]
    assert "<em>word</em>, <strong>bold</strong>, <code>code *with* [signs](x.md)</code> &amp; &lt;b&gt;" in html
    assert [item.text.replace("\n", " ") for item in page.all("li")] == ["One goes on.", "Two, a|b."]
    assert [cell.text for cell in page.all("th", scope="row")] == ["1"]
    assert [cell.text for cell in page.all("td")] == ["x"]
    assert [code.text for code in page.all("pre")] == ["stepsight score", 'print("<x>")']


@pytest.fixture(scope="module")
def pages():
    return {name: read(document_html((MANUAL / f"{name}.md").read_text(encoding="utf-8"))) for name in list_pages()}


def test_links_of_the_manual_lead_to_headings_that_there_are(pages):
    anchors = {
        (name, heading["id"]) for name, page in pages.items() for tag in ("h2", "h3") for heading in page.all(tag)
    }
    assert sorted(pages) == sorted(path.stem for path in MANUAL.glob("*.md"))
    for name, page in pages.items():
        for link in page.all("a"):
            match = re.fullmatch(r"(?:/help/([a-z-]+))?(?:#([\w-]+))?", link["href"])
            other = match[1] or name
            assert other in pages
            assert match[2] is None or (other, match[2]) in anchors, f"{name}: {link['href']}"
