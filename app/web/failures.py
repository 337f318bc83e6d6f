"""Errors as responses with the right status, a page for a browser or JSON for a program, and downloads that are
complete before the first byte is sent, so that an error while writing is reported as an error."""

import logging
from collections.abc import Callable, Iterable
from pathlib import Path
from tempfile import TemporaryDirectory
from urllib.parse import quote

from fastapi import FastAPI, Request
from starlette.background import BackgroundTask
from starlette.datastructures import Headers
from starlette.responses import FileResponse, HTMLResponse, JSONResponse, Response
from starlette.types import Scope

from stepsight.app.scoring.batcher import BusyError, ShortError
from stepsight.app.scoring.loading import LoadingError
from stepsight.app.web.access import request_id
from stepsight.app.web.html import render
from stepsight.core.errors import AddressError, UserError
from stepsight.core.inference_servers.server import ServerError
from stepsight.core.scoring.client import API
from stepsight.storage.database.store import ConflictError, ForbiddenError, NotFoundError, UnavailableError
from stepsight.storage.database.stored_json import DamagedError
from stepsight.storage.people.users import LOCAL

_STATUS = (
    (ForbiddenError, 403),
    (NotFoundError, 404),
    (ConflictError, 409),
    (UnavailableError, 503),
    (ShortError, 503),
    (DamagedError, 500),
    (BusyError, 429),
    (LoadingError, 429),
    (ServerError, 502),
)
_TITLES = {
    401: "Not logged in",
    403: "Not allowed",
    404: "Not found",
    409: "No longer possible",
    413: "Too large",
    429: "Too busy",
    500: "Something went wrong",
    502: "The evaluator's server failed",
    503: "Not possible right now",
}


OURS = "Something went wrong in StepSight itself."


def logged_under() -> str:
    """Return a hint with the request id under which an admin finds the cause of an error in the log."""
    reference = f" under request {request_id()}" if request_id() else ""
    return f"The server's log has the reason{reference}."


def status_of(error: UserError) -> int:
    """Return the HTTP status for an error.

    It is 403 for an action that the user may not perform, 404 for something that does not exist, and 409 for a
    conflict with a concurrent change. It is 503 if the database fails or the server is short of memory or time, 429
    if too many requests are waiting or an evaluator is being loaded, and 502 if the server behind an evaluator
    fails. For any other error, it is 422.
    """
    return next((status for kind, status in _STATUS if isinstance(error, kind)), 422)


def page_status(errors: Iterable[UserError]) -> int:
    """Return the HTTP status of a page that reports these errors. It is the status of the first error caused by the
    page's URL, or 200 without such an error: a page that has nothing to show yet is a success."""
    statuses = (status_of(error) for error in errors if isinstance(error, AddressError | NotFoundError))
    return next(statuses, 200)


def answer_errors(application: FastAPI) -> None:
    """Have the application respond to every `UserError` that a route raises with `error_response`."""
    application.add_exception_handler(UserError, _answer)


async def _answer(request: Request, error: Exception) -> Response:
    assert isinstance(error, UserError)
    return error_response(request.scope, error)


def error_response(scope: Scope, error: UserError) -> Response:
    """Return the response to a request that raised `error`."""
    reported = _public_error(error)
    return _with_patience(error, failure_response(scope, status_of(error), reported.message, reported.hint))


def error_json(error: UserError) -> Response:
    """Like `error_response`, but always respond with JSON, whichever media types the client accepts."""
    reported = _public_error(error)
    return _with_patience(error, failure_json(status_of(error), reported.message, reported.hint))


def _public_error(error: UserError) -> UserError:
    """Return the error as it is reported over HTTP. Anything that may not be shown there is in the log."""
    if error.shown:
        logging.getLogger("stepsight").error("%s", error)
    return error.without_options()


def failure_response(scope: Scope, status: int, message: str, hint: str = "") -> Response:
    """Return an error page if the client accepts HTML, and otherwise `{error, hint}` as JSON. A browser that opens
    the API gets the same response as a program."""
    if not _accepts_html(scope):
        return failure_json(status, message, hint)
    state = scope.get("state", {})
    user, rights = state.get("user"), state.get("rights")
    page = render(
        "failure.html",
        title=_TITLES.get(status, "Not possible"),
        status=status,
        message=str(UserError(message, hint).without_options()),
        user=user if user is not None and user.name != LOCAL else None,
        rights=rights,
        address=address_of(scope) if is_navigation(scope) else "",
    )
    return HTMLResponse(page, status)


def is_navigation(scope: Scope) -> bool:
    """True if a browser is opening a page, False if a script or a program is sending the request."""
    return scope["method"] in ("GET", "HEAD") and _accepts_html(scope)


def _accepts_html(scope: Scope) -> bool:
    # A browser also shows the response to a form.
    return not is_api(scope) and "text/html" in Headers(scope=scope).get("accept", "")


def is_api(scope: Scope) -> bool:
    """True if the request is one to the API."""
    return bool(scope["path"].startswith(f"{API}/"))


def address_of(scope: Scope) -> str:
    """Return the path and query of the request."""
    query = scope.get("query_string", b"").decode("latin-1")
    return quote(scope["path"]) + (f"?{query}" if query else "")


def failure_json(status: int, message: str, hint: str) -> JSONResponse:
    """Return `{error, hint}` as JSON. The length of both texts is limited, as in a `UserError`."""
    error = UserError(message, hint).without_options()
    return JSONResponse({"error": error.message, "hint": error.hint}, status)


def _with_patience(error: UserError, response: Response) -> Response:
    if isinstance(error, BusyError | LoadingError | ShortError | UnavailableError):
        response.headers["retry-after"] = str(error.seconds)
    return response


def whole_file(write: Callable[[Path], object], filename: str, media_type: str | None = None) -> FileResponse:
    """Return the file that `write` writes as a download called `filename`. Raises the errors of `write`, and
    `UserError` if the disk has no room for the file."""
    folder = TemporaryDirectory(prefix="stepsight-")
    path = Path(folder.name) / "file"
    try:
        write(path)
    except OSError as error:
        folder.cleanup()
        raise UserError(
            f"{folder.name}: the file cannot be written ({error.strerror}).",
            "Free some space there, or set TMPDIR to another folder.",
        ) from None
    except BaseException:
        folder.cleanup()
        raise
    return FileResponse(path, filename=filename, media_type=media_type, background=BackgroundTask(folder.cleanup))
