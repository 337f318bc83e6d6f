import html
import re

import pytest

from stepsight.app.web.access import COOKIE
from stepsight.storage.people.logins import list_invitations, open_login
from stepsight.storage.people.users import Role, find_user
from tests.app.client import PAGE, who
from tests.storage.labelling.labelled_sums import labelled
from tests.storage.people.samples import user

NEW = "a good sentence"


@pytest.fixture
def boss(sqlite_store):
    return user(sqlite_store, "head", Role.ADMIN)


@pytest.fixture
def admin(client, boss, sqlite_store):
    client.headers.update(PAGE)
    client.cookies.set(COOKIE, open_login(sqlite_store, boss))
    return client


def link_of(page):
    return html.unescape(re.search(r'value="(http://[^"]+token=[^"]+)"', page)[1])


def test_a_link_leads_from_the_page_to_a_login(admin, sqlite_store):
    answer = admin.post("/people/invitations", data={"name": "", "role": "annotator"})
    link = link_of(answer.text)
    assert link.startswith("http://127.0.0.1/login/invitation?token=")
    # It is shown once, and asking for its page uses nothing up.
    assert "token=" not in admin.get("/people").text
    admin.cookies.clear()
    for _ in range(2):
        assert "head invites you to StepSight, in the role annotator" in admin.get(link).text
    form = {"token": link.partition("token=")[2], "name": "eva", "password": NEW, "again": NEW}
    refused = admin.post("/login/invitation", data=form | {"again": "another one"})
    assert (refused.status_code, "The two passwords differ." in refused.text) == (422, True)
    answer = admin.post("/login/invitation", data=form, follow_redirects=False)
    assert answer.status_code == 303
    assert who(admin)[0] == "eva"
    again = admin.post("/login/invitation", data=form | {"name": "another"})
    assert (again.status_code, "no longer valid" in again.text) == (404, True)


def test_roles_and_states_change_and_the_last_admin_stays(admin, boss, sqlite_store):
    labelled(sqlite_store)
    ada = user(sqlite_store, "ada")
    page = admin.get("/people").text
    assert all(name in page for name in ("ada", "head (you)", "annotator 1", "no password yet"))
    assert "local" not in page
    base = f"/people/users/{ada.id}"
    assert admin.post(f"{base}/role", data={"role": "viewer"}, follow_redirects=False).status_code == 303
    assert find_user(sqlite_store, "ada").role is Role.VIEWER
    admin.post(f"{base}/deactivate")
    assert not find_user(sqlite_store, "ada").active
    admin.post(f"{base}/reactivate")
    assert find_user(sqlite_store, "ada").active
    assert (
        "has sent you this link to choose a new password"
        in admin.get(link_of(admin.post(f"{base}/reset").text)).text
    )
    own = f"/people/users/{boss.id}"
    for answer in (admin.post(f"{own}/deactivate"), admin.post(f"{own}/role", data={"role": "viewer"})):
        assert (answer.status_code, "head is the last admin." in answer.text) == (409, True)
    assert find_user(sqlite_store, "head") == boss


def test_an_invitation_is_revoked(admin, sqlite_store):
    link = link_of(admin.post("/people/invitations", data={"name": "eva", "role": "viewer"}).text)
    (invitation,) = list_invitations(sqlite_store)
    admin.post(f"/people/invitations/{invitation.id}/revoke")
    assert admin.get(link).status_code == 404


@pytest.mark.parametrize(
    ("path", "form", "status", "message"),
    [
        ("/people/invitations", {"role": "king"}, 422, "The role is &#39;king&#39;."),
        ("/people/invitations", {"role": "viewer", "name": "head"}, 422, "is in use."),
        ("/people/users/999/role", {"role": "viewer"}, 404, "There is no user 999."),
        ("/people/invitations/999/revoke", {}, 404, "This invitation no longer exists."),
    ],
)
def test_a_refused_change_is_explained_on_the_page(admin, path, form, status, message):
    answer = admin.post(path, data=form)
    assert answer.status_code == status
    assert message in answer.text


def test_a_form_of_a_page_elsewhere_changes_nothing(admin, sqlite_store):
    headers = {"origin": "https://elsewhere.example"}
    answer = admin.post("/people/invitations", data={"role": "admin"}, headers=headers)
    assert (answer.status_code, list_invitations(sqlite_store)) == (403, [])


def test_without_users_the_page_tells_how_the_first_is_made_and_invites_nobody(client, sqlite_store):
    assert "stepsight user add NAME --role admin" in client.get("/people").text
    answer = client.post("/people/invitations", data={"role": "admin"})
    assert (answer.status_code, list_invitations(sqlite_store)) == (409, [])


def test_admins_alone_are_led_there(admin, sqlite_store):
    assert 'href="/people">People' in admin.get("/annotate").text
    assert "/people" in who(admin)[2]
    admin.cookies.set(COOKIE, open_login(sqlite_store, user(sqlite_store, "ada")))
    assert 'href="/people">People' not in admin.get("/annotate").text
    assert "/people" not in who(admin)[2]
