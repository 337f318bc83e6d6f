"""Files as browsers send them."""

from stepsight.storage.jobs.uploads import Receiving


def send(store, user_id, content, name="traces.jsonl", size=1000):
    """An upload of some content, which comes in pieces of that size."""
    with Receiving(store, user_id, name, len(content)) as receiving:
        for start in range(0, len(content), size):
            receiving.add(content[start : start + size])
        return receiving.finish()
