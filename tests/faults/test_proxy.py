"""Two `stepsight app` servers behind nginx on one PostgreSQL, one of which is killed while people label."""

import json
import threading
from http.client import HTTPConnection, HTTPResponse
from urllib.parse import urlencode

import pytest
from sqlalchemy import func, select

from stepsight.app.score.entered import Entered
from stepsight.app.web.access import COOKIE
from stepsight.core.trace import Trace
from stepsight.storage.database.jobs_schema import Job, State
from stepsight.storage.database.schema import TraceRow, TriangleRow
from stepsight.storage.database.store import open_store
from stepsight.storage.jobs.jobs import get_job, list_jobs
from stepsight.storage.people.logins import open_login
from stepsight.storage.people.users import Role, add_user, set_password
from stepsight.storage.traces.queries import find_dataset, list_datasets
from tests.annotators import faults, label_together, prepare
from tests.app.processes import until
from tests.programs import find_nginx
from tests.proxied import proxied, servers
from tests.storage.samples import add, many

# As many log in on the page, which takes its time.
PEOPLE, BY_PAGE, TRACES, JUDGED = 10, 2, 8, 40
PASSWORD = "a password of ten people"
JSON = {"Content-Type": "application/json"}

pytestmark = [pytest.mark.slow, pytest.mark.skipif(find_nginx() is None, reason="nginx is not installed")]


def ask(port, method, path, token="", body=None, headers=JSON):
    """The answer of the server at `port` to somebody with the token of a login, and its body."""
    connection = HTTPConnection("127.0.0.1", port, timeout=60)
    try:
        connection.request(method, path, body, {"Cookie": f"{COOKIE}-{port}={token}", **headers})
        response: HTTPResponse = connection.getresponse()
        return response, response.read().decode()
    finally:
        connection.close()


def log_in(port, name):
    """The token of a person who logs in on the page."""
    form = {"Content-Type": "application/x-www-form-urlencoded"}
    body = urlencode({"name": name, "password": PASSWORD})
    response, _ = ask(port, "POST", "/login", body=body, headers=form)
    assert response.status == 303
    return response.headers["set-cookie"].partition(f"{COOKIE}-{port}=")[2].partition(";")[0]


def who(port, token):
    """The name in the navigation bar."""
    html = ask(port, "GET", "/help/about", token)[1]
    return html.partition('<a href="/login/password">')[2].partition("<")[0]


def score(port, token):
    """What an event of the Score page gives of a solution."""
    trace = Trace.of("What is 2 + 3?", ["2 + 3 = 5.", "The answer is 6."])
    query = f"?s={Entered.of(trace, ['mini-bidir']).token()}"
    response, text = ask(port, "POST", "/score/open", token, json.dumps({"query": query}))
    assert response.status == 200, text
    return json.loads(text)["result"]


def test_one_of_two_servers_is_killed_while_people_label(postgresql, tmp_path):
    address = postgresql.make()
    with open_store(address) as store:
        campaign, people = prepare(store, PEOPLE, TRACES, overlap=3)
        for user, _ in people[:BY_PAGE]:
            set_password(store, user.name, PASSWORD)
        boss = open_login(store, add_user(store, "boss", Role.ADMIN, None))
        add(store, many(JUDGED), "judged")
        with servers(address, 2) as (first, second), proxied([first.port, second.port], tmp_path) as port:
            # Both put the gallery into the store once they answer.
            until(lambda: "gallery" in (dataset.name for dataset in list_datasets(store)))
            gallery = find_dataset(store, "gallery")
            with store.read() as session:
                assert (
                    session.scalar(select(func.count()).where(TraceRow.dataset_id == gallery.id)) == gallery.traces
                )
            logged_in = [(user, log_in(port, user.name)) for user, _ in people[:BY_PAGE]] + people[BY_PAGE:]
            assert [who(port, token) for user, token in logged_in] == [user.name for user, _ in people]
            refused = [ask(port, "GET", "/browse", logged_in[0][1])[0].status for _ in range(4)]
            assert refused == [403] * 4
            results = [score(one, boss) for one in (first.port, second.port)]
            assert results[0] == results[1] != ""

            wanted = json.dumps({"dataset": "judged", "evaluator": "mini-bidir", "mode": "hindsight"})
            # Its own worker, which looks at once, judges; the other's goes on with it.
            assert ask(first.port, "POST", "/api/v1/jobs", boss, wanted)[0].status == 201
            (job,) = list_jobs(store)
            until(lambda: get_job(store, job.id).state == State.RUNNING)
            killed = threading.Event()

            def kill(share):
                until(lambda: share() > 0.2)
                first.kill()
                killed.set()

            annotators = label_together(store, port, campaign, logged_in, kill)
            assert killed.is_set()
            assert faults(store, campaign, annotators) == []
            assert [who(port, token) for user, token in logged_in] == [user.name for user, _ in people]

            until(lambda: not get_job(store, job.id).state.is_active)
            assert get_job(store, job.id).state == State.DONE
            with store.read() as session:
                judged = session.scalars(
                    select(TriangleRow.trace_id).where(TriangleRow.dataset_id == job.dataset_id)
                ).all()
                assert session.scalar(select(func.count()).select_from(Job)) == 1
            assert len(judged) == len(set(judged)) == JUDGED

            assert ask(second.port, "POST", f"/annotate/campaigns/{campaign.id}/close", boss, "{}")[0].status == 200
            assert ask(port, "GET", "/browse", logged_in[0][1])[0].status == 200
            assert [line for line in first.lines + second.lines if "failed" in line or "Traceback" in line] == []
