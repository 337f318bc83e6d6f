"""The file of messages holds those of the tests that there are."""

from tests.messages import dangling


def test_every_message_belongs_to_a_test():
    assert dangling() == [], "pytest --new-messages, with the tests of these files, takes them out"
