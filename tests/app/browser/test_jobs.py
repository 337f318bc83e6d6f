"""The Jobs page as a person uses it, and what the server is asked for by all pages."""

import re

from playwright.sync_api import expect

from stepsight.app.jobs.worker import Worker
from stepsight.storage.database.store import open_store
from tests.app.browser.acts import overflow
from tests.serving import served
from tests.storage.samples import add


def test_a_job_is_started_cancelled_resumed_worked_off_and_refused(opened, evaluators, tmp_path):
    path = tmp_path / "store.db"
    with open_store(str(path)) as store, served(store, evaluators) as address:
        add(store)
        with opened(base=address, expected=["status of 404", "status of 503"]) as page:
            page.goto("/jobs")
            expect(page.get_by_text("There are no jobs yet.")).to_be_visible()
            page.get_by_label("Evaluator").select_option("tiny-causal")
            page.get_by_role("button", name="Start").click()
            row = page.locator("ol.jobs > li")
            expect(row).to_have_count(1)
            expect(row).to_contain_text(re.compile("sums.*tiny-causal.*hindsight.*waiting", re.DOTALL))
            # What was chosen stays chosen.
            expect(page.get_by_label("Evaluator")).to_have_value("tiny-causal")
            # Whatever a person does there outlasts a change of the row.
            row.evaluate("row => (window.met = [row, row.querySelector('.what')])")
            # By keyboard: the button keeps the focus while the row changes under it.
            page.get_by_role("button", name="Cancel sums, tiny-causal, hindsight").press("Enter")
            expect(row.locator(".state")).to_have_text("cancelled")
            expect(page.get_by_role("button", name="Resume sums, tiny-causal, hindsight")).to_be_focused()
            page.keyboard.press("Enter")
            expect(row.locator(".state")).to_have_text("waiting")
            assert Worker(store).work_one()
            expect(row.locator(".state")).to_have_text("done")
            expect(row).to_contain_text("4 of 4 traces")
            assert row.evaluate("row => row === met[0] && row.querySelector('.what') === met[1]")
            expect(page.get_by_role("progressbar")).to_have_attribute("aria-valuenow", "100.0")
            page.reload()
            expect(row.locator(".state")).to_have_text("done")
            page.set_viewport_size({"width": 390, "height": 1000})
            # A form in use stays as it is when the list is asked for again.
            page.get_by_label("Dataset").focus()
            page.locator("select[name=dataset] option").evaluate("option => option.value = 'gone'")
            page.get_by_role("button", name="Start").click()
            expect(page.get_by_role("alert")).to_contain_text("There is no dataset 'gone'")
            path.rename(tmp_path / "away.db")
            expect(page.locator("body > .away")).to_contain_text("the file is gone")
            (tmp_path / "away.db").rename(path)
            expect(page.locator("body > .away")).to_have_count(0)
            assert overflow(page) <= 0
