"""Downloads of judgments while an evaluator is at work."""

import threading
from concurrent.futures import ThreadPoolExecutor

from fastapi import FastAPI, Response
from fastapi.testclient import TestClient

from stepsight.app.browse import page as browse_page
from stepsight.app.score import files
from stepsight.app.score.entered import Entered
from stepsight.app.web.pages import waiting_route
from stepsight.core.trace import Trace
from tests.app.client import asking
from tests.app.held_up import hold_up
from tests.storage.samples import ERROR, add


def test_a_download_waits_for_a_judgment_for_a_while(sqlite_store, tiny, monkeypatch):
    for module in (files, browse_page):
        monkeypatch.setattr(module, "DOWNLOAD_PATIENCE", 0.1)
    (stored,) = add(sqlite_store, [ERROR])
    evaluators, scorer = hold_up(tiny)
    token = Entered.of(Trace.of("What is 2 + 3?", ["2 + 3 = 5."]), ["tiny"]).token()
    paths = [
        address
        for name in ("json", "csv")
        for address in (f"/score/result.{name}?s={token}", f"/browse/trace.{name}?trace={stored.trace_id}")
    ]
    with asking(sqlite_store, evaluators) as client:
        late = [client.get(path) for path in paths]
        assert {(answer.status_code, answer.headers["retry-after"]) for answer in late} == {(503, "5")}
        assert late[0].json()["error"] == "The solution is still being judged."
        scorer.go.set()
        monkeypatch.setattr(files, "DOWNLOAD_PATIENCE", 60.0)
        monkeypatch.setattr(browse_page, "DOWNLOAD_PATIENCE", 60.0)
        assert [client.get(path).status_code for path in paths] == [200] * 4


def test_downloads_that_wait_hold_up_no_other_page():
    application, go = FastAPI(), threading.Event()

    def download(request):
        assert go.wait(60)
        return Response("whole")

    application.add_api_route("/download", waiting_route(download))
    application.add_api_route("/page", lambda: "page")
    with TestClient(application) as client, ThreadPoolExecutor(60) as threads:
        waiting = [threads.submit(client.get, "/download") for _ in range(60)]
        try:
            assert client.get("/page").json() == "page"
            assert not any(download.done() for download in waiting)
        finally:
            go.set()
        assert {download.result().text for download in waiting} == {"whole"}
