"""Logging in and out, in headless Chromium."""

import pytest
from playwright.sync_api import expect

from stepsight.storage.database.store import open_store
from stepsight.storage.people.users import Role
from tests.app.browser.checks import in_both_schemes
from tests.serving import served
from tests.storage.people.samples import PASSWORD, user
from tests.storage.samples import add

# A problem of the samples.
PROBLEM = "What is 2 + 2?"


@pytest.fixture(scope="module")
def home(tmp_path_factory, evaluators):
    """A store with an annotator, ada, and an admin, grace; and its address."""
    with open_store(str(tmp_path_factory.mktemp("login") / "store.db")) as store:
        add(store)
        user(store, "ada")
        user(store, "grace", Role.ADMIN)
        with served(store, evaluators) as address:
            yield store, address


def log_in(page, name="ada", password=PASSWORD):
    page.get_by_label("Name").fill(name)
    page.get_by_label("Password").fill(password)
    page.keyboard.press("Enter")


def test_a_person_logs_in_and_out_and_a_form_sent_afterwards_is_answered_with_a_page(opened, home):
    _, address = home
    with opened(base=address, reduced_motion="reduce", expected=["status of 401"]) as page:
        page.goto("/browse?trace=2")
        expect(page).to_have_title("Log in · StepSight")
        expect(page.get_by_label("Name")).to_be_focused()
        assert in_both_schemes(page, "form.login") == {}
        # Where nobody is logged in there is no page to go to.
        expect(page.locator("nav.top .places a:visible")).to_have_count(0)
        log_in(page, password="wrong")
        expect(page.get_by_role("alert")).to_contain_text("The name or the password is wrong.")
        expect(page.get_by_label("Name")).to_have_value("ada")
        expect(page.get_by_label("Password")).to_be_focused()
        page.keyboard.type(PASSWORD)
        page.keyboard.press("Enter")
        page.wait_for_url("**/browse?trace=2")
        expect(page.get_by_text(PROBLEM).first).to_be_visible()
        expect(page.get_by_role("link", name="ada")).to_be_visible()
        page.get_by_role("link", name="ada").click()
        page.wait_for_url("**/login/password")
        assert in_both_schemes(page, "form.login") == {}
        page.go_back()
        page.wait_for_url("**/browse?trace=2")
        page.get_by_role("button", name="Log out").click()
        page.wait_for_url("**/login")
        # Neither the cache nor the page as it was comes back.
        page.go_back()
        page.wait_for_url("**/login?next=/browse**")
        expect(page.get_by_label("Password")).to_be_visible()
        expect(page.get_by_text(PROBLEM)).to_have_count(0)
        page.goto("/people")
        log_in(page, "grace")
        page.wait_for_url(f"{address}/people")
        page.context.clear_cookies()
        page.get_by_role("button", name="Create a link", exact=True).click()
        expect(page.get_by_role("heading", level=1)).to_have_text("Not logged in")
        page.get_by_role("link", name="Log in", exact=True).first.click()
        page.wait_for_url("**/login**")
