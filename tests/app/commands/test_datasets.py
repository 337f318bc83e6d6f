"""`stepsight datasets` with an action."""

from stepsight.core.judgment import Mode
from stepsight.storage.database.store import open_store
from stepsight.storage.judgments.judgments import save_judgments
from stepsight.storage.traces.queries import list_datasets
from tests.storage.samples import add, evaluator, judge


def test_datasets_are_renamed_and_deleted(command, tmp_path):
    db = str(tmp_path / "store.db")
    with open_store(db) as store:
        add(store)
        assert command("datasets", "rename", "sums", "new", "--db", db)[1] == "sums is now new.\n"
        # Nobody can be asked here.
        refused = command("datasets", "delete", "new", "--db", db)
        assert refused[::2] == (2, "stepsight datasets: new: 4 traces will be deleted. Give --yes to go on.\n")
        assert [one.name for one in list_datasets(store)] == ["new"]
        assert command("datasets", "delete", "new", "--yes", "--db", db)[1] == "new: deleted.\n"
        assert list_datasets(store) == []


def test_the_scores_of_an_evaluator_are_deleted_alone(command, tmp_path):
    db = str(tmp_path / "store.db")
    with open_store(db) as store:
        traces, mini = add(store), evaluator(store)
        save_judgments(store, mini.id, [judge(trace, Mode.ONLINE) for trace in traces])
        delete = command("datasets", "delete", "sums", "--evaluator", "mini", "--yes", "--db", db)
        assert delete[1:] == (
            "mini on sums: deleted.\n", "mini on sums: 4 judgments, online will be deleted. \n",
        )  # fmt: skip
