"""Rendering pictures with Kaleido in a process that can be killed: `python -m stepsight.training.runs.drawing`.

Standard input is a JSON list in Kaleido's format, with the figure, path and options of each picture.
"""

import asyncio
import json
import sys
from contextlib import suppress
from typing import Any

from choreographer import Tab
from kaleido import Kaleido
from kaleido.errors import ChromeNotFoundError

# Seconds that the browser has to answer that it ends; on an idle machine it takes a tenth of one.
_CLOSING = 5


async def draw(orders: list[dict[str, Any]]) -> None:
    """Render each figure to its path. Errors raised by Kaleido, its browser or the file system are passed on."""
    _listen_early()
    # Otherwise its page fetches MathJax. The browser's own requests end at a proxy that does not exist.
    browser = Kaleido(mathjax=False, proxy_server="127.0.0.1:9")
    await browser.open()
    try:
        await browser.write_fig_from_object(orders, cancel_on_error=True)
    finally:
        # Kaleido waits for ever for a browser that ends without answering. If interrupted, it ends the browser.
        with suppress(TimeoutError):
            await asyncio.wait_for(browser.close(), _CLOSING)


def _listen_early() -> None:
    """Make every browser tab of this process report page loads from the start.

    Kaleido navigates a tab to its page before it subscribes to the tab's events. On a busy machine the page may
    load in between, and Kaleido would then wait for ever.
    """
    create_session = Tab.create_session

    async def create_listening(tab: Tab) -> Any:
        session = await create_session(tab)
        await tab.send_command("Page.enable")
        return session

    Tab.create_session = create_listening  # type: ignore[assignment,method-assign]


def main() -> int:
    """Render the figures given on standard input and return the exit code.

    If rendering fails, the last line on standard error gives the reason.
    """
    try:
        asyncio.run(draw(json.load(sys.stdin)))
    except ChromeNotFoundError:
        print("no Chrome or Chromium was found", file=sys.stderr)
        return 1
    except Exception as error:  # browsers fail in many ways
        print((str(error).strip() or type(error).__name__).splitlines()[0], file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
