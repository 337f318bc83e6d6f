"""What the server answers, without a browser."""

import http.client
import re
import shutil
import signal
import urllib.error
import urllib.request

import pytest

from tests.forked import Forked
from tests.serving import serving


@pytest.fixture(scope="module")
def address(tmp_path_factory, seeded_file):
    with serving(tmp_path_factory.mktemp("served"), seeded=seeded_file) as address:
        yield address


@pytest.mark.parametrize("path", ["/", "/browse", "/browse?trace=1"])
def test_pages_answer_under_our_policy(address, path):
    with urllib.request.urlopen(address + path) as response:
        body = response.read().decode()
        policy = response.headers["content-security-policy"]
    assert response.status == 200
    nonce = policy.split("'nonce-")[1].split("'")[0]
    assert f'nonce="{nonce}"' in body
    assert "frame-ancestors 'none'" in policy
    assert "http://" not in body.replace(address, "").replace("http://www.w3.org", "")


@pytest.mark.parametrize(
    "path", ["style.css", "pages.css", "pages.js", "katex/katex.min.js", "katex/fonts/KaTeX_Main-Regular.woff2"]
)
def test_the_files_that_pages_need_are_served(address, path):
    with urllib.request.urlopen(f"{address}/stepsight/{path}") as response:
        assert response.status == 200
        assert response.headers["x-content-type-options"] == "nosniff"


@pytest.mark.parametrize(
    "path", ["/stepsight/../cli.py", "/stepsight/%2e%2e/evaluators/mini-bidir/config.json", "/docs"]
)
def test_other_files_are_not(address, path):
    with pytest.raises(urllib.error.HTTPError) as caught:
        urllib.request.urlopen(address + path)
    assert caught.value.code == 404


def test_another_host_name_is_refused(address):
    request = urllib.request.Request(address, headers={"Host": "example.org"})
    with pytest.raises(urllib.error.HTTPError) as caught:
        urllib.request.urlopen(request)
    assert caught.value.code == 400


def test_one_interrupt_ends_the_command_though_a_page_is_open(seeded_file, tmp_path):
    shutil.copy(seeded_file, tmp_path / "store.db")
    with Forked(None, ["app", "--db", tmp_path / "store.db", "--port", 0]) as process:
        printed = ""
        while "Ctrl-C" not in printed:
            printed += process.stderr.readline()
        port = re.search(r"http://127\.0\.0\.1:(\d+)", printed)[1]
        open_page = http.client.HTTPConnection(f"127.0.0.1:{port}")
        open_page.request("GET", "/")
        assert open_page.getresponse().read()
        process.send_signal(signal.SIGINT)
        rest = process.communicate(timeout=30)[1]
        open_page.close()
    assert process.returncode in (0, 130)
    assert "Traceback" not in rest
