"""The pictures of the README and the manual: each comes from the application, and shows its page of today."""

import re

import pytest

from tests.conftest import ROOT
from tests.screenshots import FOLDER, SHOTS, differences, outline, page_of, picture, running, stored_outline

_PICTURE = re.compile(r"!\[[^\]]*\]\(([^)]+)\)")


def test_every_picture_in_the_documents_is_taken_by_the_command_and_every_one_taken_is_in_them():
    documents = [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]
    named = {(path.parent / name).resolve() for path in documents for name in _PICTURE.findall(path.read_text())}
    assert named == {picture(shot).resolve() for shot in SHOTS} == {path.resolve() for path in FOLDER.iterdir()}


@pytest.mark.parametrize(
    ("after", "differs"),
    [
        ('- heading "Judge"\n- text: online 0.70, 3 of 9', False),
        ('- heading "Judge"\n- text: online 0.71, 3 of 9', False),
        ('- heading "Judge"\n- text: online 0.72, 3 of 9', True),
        ('- heading "Judge"\n- text: online 0.7, 3 of 9', True),
        ('- heading "Judge"\n- text: online 0.70, 4 of 9', True),
        ('- heading "Judge it"\n- text: online 0.70, 3 of 9', True),
        ('- heading "Judge"\n- text: online 0.70, 3 of 9\n- button "Score"', True),
    ],
)
def test_a_page_with_other_words_or_figures_differs(after, differs):
    assert bool(differences('- heading "Judge"\n- text: online 0.70, 3 of 9', after)) == differs


@pytest.mark.slow
def test_pictures_show_the_pages_of_today():
    outdated = []
    with running() as (browser, address):
        for shot in SHOTS:
            with page_of(browser, address, shot) as page:
                if text := differences(stored_outline(shot), outline(page)):
                    outdated.append(
                        f"{picture(shot).name} shows another page; take it again: make screenshots\n{text}"
                    )
    assert not outdated, "\n\n".join(outdated)
