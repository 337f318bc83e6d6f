"""What each role can do on each page: its forms, and its buttons outside them."""

import pytest

from stepsight.app.web.access import COOKIE
from stepsight.storage.people.logins import open_login
from stepsight.storage.people.users import Role
from tests.app.client import PAGE
from tests.app.elements import read
from tests.filling import fill
from tests.storage.people.samples import user
from tests.transcripts import same_outcome

PATHS = """
    / /evidence?trace=1 /browse?dataset=sums&evaluator=mini /browse?trace=1 /results?dataset=sums /evaluators /data
    /jobs /people /annotate /annotate/campaign?campaign=1 /annotate/label?campaign=1 /annotate/own?campaign=1
    /annotate/agreement?campaign=1 /annotate/adjudicate?campaign=1 /annotate/disputes /annotate/disputes/1
    /annotate/dispute?trace=2&step=1 /annotate/new?dataset=sums
"""


def acts(element):
    """The addresses of forms, and the names of other buttons, once each, in order."""
    for child in element.children:
        if child.tag == "form":
            yield f"{child.attributes.get('method') or 'get'} {child.attributes.get('action') or ''}".strip()
        elif child.tag == "button":
            yield child.attributes.get("aria-label") or " ".join(child.text.split())
        else:
            yield from acts(child)


def settled(client, path, headers):
    """The answer once nothing on the page is being computed."""
    while True:
        client.cookies.clear()
        answer = client.get(path, headers=headers, follow_redirects=False)
        if "data-again" not in answer.text:
            return answer


@pytest.mark.slow
def test_each_role_has_what_it_may_do(client, sqlite_store, tmp_path):
    fill(sqlite_store, tmp_path / "filling")
    logins = {
        role.value: f"{COOKIE}={open_login(sqlite_store, user(sqlite_store, role.value, role))}" for role in Role
    }
    for path in PATHS.split():
        seen = {}
        for role, login in {**logins, "nobody": ""}.items():
            answer = settled(client, path, PAGE | ({"cookie": login} if login else {}))
            lines = [f"{answer.status_code} {answer.headers.get('location', '')}".strip()]
            if answer.status_code == 200:
                main = answer.text[answer.text.index("<main") : answer.text.index("</main>") + len("</main>")]
                lines += dict.fromkeys(acts(read(main)))
            seen.setdefault("\n".join(lines), []).append(role)
        for text, roles in seen.items():
            same_outcome(f"== {path} for {', '.join(roles)}\n{text}")
