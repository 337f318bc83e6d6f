"""From the People page to a label, as an admin and whoever they invite do it."""

import pytest
from playwright.sync_api import expect

from stepsight.app.web.access import COOKIE
from stepsight.storage.labelling.campaigns import find_campaign
from stepsight.storage.labelling.submissions import iterate_annotations
from stepsight.storage.people.logins import open_login
from stepsight.storage.people.users import Role
from tests.app.browser.acts import listening
from tests.serving import served
from tests.storage.labelling.samples import TWO, campaign
from tests.storage.people.samples import user


def enter(page, base, token):
    page.context.add_cookies([{"name": f"{COOKIE}-{base.rpartition(':')[2]}", "value": token, "url": base}])


@pytest.mark.slow
def test_somebody_is_invited_to_a_campaign_and_labels_in_it(evaluators, sqlite_store, opened):
    store = sqlite_store
    boss = user(store, "head", Role.ADMIN)
    user(store, "ben")
    campaign(store, [TWO], name="for some", after_submission="everything")
    campaign(store, None, name="for others")
    token = open_login(store, boss)
    with served(store, evaluators) as base, opened(base=base) as page:
        enter(page, base, token)
        # Both campaigns are given to chosen people, of whom the new one is not yet any.
        for name in ("for some", "for others"):
            page.goto("/annotate")
            page.get_by_role("link", name=f"Manage: {name}").click()
            page.wait_for_load_state()
            page.get_by_label("only these:").check()
            page.get_by_label("ben", exact=True).check()
            page.get_by_role("button", name="Save annotators").click()
            expect(page.locator(".lead")).to_contain_text("by chosen annotators")
        page.get_by_role("navigation", name="Pages").get_by_role("link", name="People").click()
        expect(page.get_by_role("row", name="ben")).to_contain_text("for others, for some")
        page.locator("select[name=campaign]").select_option("for some")
        page.get_by_role("button", name="Create a link", exact=True).click()
        link = page.get_by_label("Send this link").input_value()
        expect(page.get_by_role("row", name="anybody with the link")).to_contain_text("for some")
        page.context.clear_cookies()
        page.goto(link)
        expect(page.locator(".lead")).to_contain_text("in the role annotator, to label in for some")
        page.get_by_label("Name").fill("eva")
        page.get_by_label("Password, at least").fill("a good sentence")
        page.get_by_label("Password again").fill("a good sentence")
        page.get_by_role("button", name="Continue").click()
        # While a blind campaign is open, labelling is all there is; and only in the campaign that is theirs.
        expect(page.locator("h1")).to_have_text("Annotate")
        expect(page.locator(".campaigns h2")).to_have_text(["for some"])
        expect(page.get_by_role("navigation", name="Pages").get_by_role("link", name="People")).to_have_count(0)
        page.get_by_role("link", name="Start labelling for some").click()
        expect(page.locator("ol.steps > li[aria-current]")).to_have_count(1)
        listening(page)
        page.keyboard.type("31")
        expect(page.locator(".status")).to_contain_text("all saved")
        page.keyboard.press("Enter")
        expect(page.locator("#review h1")).to_have_text("Submitted")
        (said,) = iterate_annotations(store, find_campaign(store, "for some").id)
        assert (said.user, said.labels) == ("eva", ("pos", "neg"))
        # Back to the admin, who downloads the labels.
        page.context.clear_cookies()
        enter(page, base, token)
        page.goto("/annotate")
        page.get_by_role("link", name="Manage: for some").click()
        expect(page.get_by_role("row", name="eva")).to_contain_text("1")
        with page.expect_download() as download:
            page.get_by_role("button", name="Download the labels").click()
        assert '"labels": ["pos", "neg"]' in download.value.path().read_text(encoding="utf-8")
