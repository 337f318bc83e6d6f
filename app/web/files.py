"""The style sheet, scripts and fonts of the pages, as shipped."""

from typing import Any

from starlette.responses import Response
from starlette.staticfiles import StaticFiles


class FreshFiles(StaticFiles):
    """Static files that a browser keeps, but asks about each time: after an upgrade no page mixes two versions."""

    def file_response(self, *args: Any, **kwargs: Any) -> Response:
        response = super().file_response(*args, **kwargs)
        response.headers["cache-control"] = "no-cache"
        return response
