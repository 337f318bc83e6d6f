"""The status of a page whose address asks for what is not there; the page itself says so to people."""

from collections.abc import Callable, Mapping, Sequence
from urllib.parse import parse_qsl

from anyio import to_thread
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from stepsight.app.browse.evaluator_choice import keys_of, list_choices
from stepsight.app.scoring.evaluators import Evaluators
from stepsight.app.web.failures import error_response, status_of
from stepsight.core.errors import UserError
from stepsight.storage.database.store import NotFoundError, Store, UnavailableError
from stepsight.storage.judgments.evaluators import list_evaluators
from stepsight.storage.traces.queries import find_dataset, get_trace

Check = Callable[[Mapping[str, str]], None]
Problems = Callable[[Mapping[str, str]], Sequence[str]]


class DeepLinks:
    """ASGI middleware: `checks` gives for the path of a page what raises a `UserError` at a query it cannot show.

    The page then comes with that error's status. Where the store does not answer, a page that needs nothing of it
    comes instead.
    """

    def __init__(self, app: ASGIApp, checks: Mapping[str, Check]) -> None:
        self.app = app
        self.checks = checks

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        check = self.checks.get(scope.get("path", "")) if scope["type"] == "http" else None
        if check is None or scope["method"] not in ("GET", "HEAD"):
            await self.app(scope, receive, send)
            return
        query = dict(parse_qsl(scope["query_string"].decode("latin-1")))
        try:
            await to_thread.run_sync(check, query)
        except UnavailableError as error:
            await error_response(scope, error)(scope, receive, send)
            return
        except UserError as error:
            send = _with_status(status_of(error), send)
        await self.app(scope, receive, send)


def check_query(store: Store, evaluators: Evaluators, problems: Problems, query: Mapping[str, str]) -> None:
    """Raises `UserError` where a part of the query makes no sense, which `problems` tells, or where `trace`,
    `dataset` or `evaluator` names nothing that is there; `UnavailableError` where the store does not answer."""
    store.check()
    if messages := problems(query):
        raise UserError(messages[0])
    trace = get_trace(store, int(query["trace"])) if query.get("trace") else None
    dataset = find_dataset(store, query["dataset"]).id if query.get("dataset") else None
    if name := query.get("evaluator"):
        _check_evaluator(store, evaluators, name, trace.dataset_id if trace else dataset)


def _check_evaluator(store: Store, evaluators: Evaluators, name: str, dataset_id: int | None) -> None:
    if name in evaluators.all_names:
        return
    if dataset_id is None:
        keys = {key for row in list_evaluators(store) for key in keys_of(row)}
    else:
        keys = {choice.key for choice in list_choices(store, evaluators, dataset_id)}
    if name not in keys:
        raise NotFoundError(f"There is no evaluator {name!r:.80}.", "Choose one on the page.")


def _with_status(status: int, send: Send) -> Send:
    async def changed(message: Message) -> None:
        if message["type"] == "http.response.start" and message["status"] == 200:
            message = {**message, "status": status}
        await send(message)

    return changed
