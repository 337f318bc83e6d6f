"""The Chromium that the browser tests drive.

    python -m tests.browser

makes sure there is one: `STEPSIGHT_CHROMIUM`, an installed one, Playwright's own, or Debian's package.
"""

import os
import shutil
import subprocess
import sys

from playwright.sync_api import Browser, Error, Playwright, sync_playwright

_NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
_ARGUMENTS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update"]


def installed() -> str | None:
    """The path of a Chromium on this machine, or None."""
    return os.environ.get("STEPSIGHT_CHROMIUM") or next(filter(None, map(shutil.which, _NAMES)), None)


def launch(playwright: Playwright) -> Browser:
    """A headless browser that asks the network for nothing of its own."""
    for path in (installed(), None):
        try:
            return playwright.chromium.launch(executable_path=path, args=_ARGUMENTS)
        except Error as error:
            # What is installed may be a stub that starts nothing; Playwright's own comes next.
            failure = error
    raise failure


def main() -> int:
    """Install a browser where there is none; returns the exit code."""
    attempts = [
        None,
        [sys.executable, "-m", "playwright", "install", "chromium"],
        ["apt-get", "update", "-qq"],
        ["apt-get", "install", "-y", "-qq", "chromium"],
    ]
    for command in attempts:
        if command is not None:
            print(f"No Chromium yet: {' '.join(command)}", file=sys.stderr)
            try:
                subprocess.run(command, check=False, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            except OSError:
                continue
        if works():
            return 0
    print("The browser tests need Chromium. Install it, or set STEPSIGHT_CHROMIUM to its path.", file=sys.stderr)
    return 2


def works() -> bool:
    """Whether a browser can be started."""
    try:
        with sync_playwright() as playwright:
            launch(playwright).close()
    except Exception:  # whatever keeps it from starting, the next attempt may mend it
        return False
    return True


if __name__ == "__main__":
    sys.exit(main())
