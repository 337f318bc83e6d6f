"""The file of messages and the transcripts hold those of the tests that there are."""

import pytest

from tests.messages import dangling
from tests.transcripts import unused


@pytest.mark.slow
def test_every_message_and_transcript_belongs_to_a_test():
    assert dangling() == [], "pytest --new-messages, with the tests of these files, takes them out"
    assert unused() == [], "take these files out"
