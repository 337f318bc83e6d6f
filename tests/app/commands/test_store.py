"""`stepsight datasets`, `jobs`, `user`, `backup` and `restore`."""

import subprocess
import sys

import pytest

from stepsight.core.judgment import Mode
from stepsight.storage.database.store import open_store
from stepsight.storage.jobs.jobs import list_jobs, start_job
from stepsight.storage.judgments.judgments import save_judgments
from stepsight.storage.people.logins import log_in, open_login, user_of
from stepsight.storage.people.users import Role, find_user, list_users
from stepsight.storage.traces.queries import list_datasets
from tests.conftest import ROOT
from tests.storage.labelling.labelled_sums import labelled
from tests.storage.people.samples import PASSWORD, user
from tests.storage.samples import add, evaluator, judge, redundant_row, write_lines

# Runs a command on a terminal of its own, which gets what comes on standard input.
TERMINAL = "import pty, sys; sys.exit(pty.spawn(sys.argv[1:]) >> 8)"


def test_datasets_are_listed_renamed_and_deleted(typed, sqlite_store, tmp_path):
    typed("datasets")
    typed("datasets --json")
    traces, mini = add(sqlite_store), evaluator(sqlite_store)
    write_lines(tmp_path / "redundant.json", [redundant_row(), redundant_row(id=8)])
    typed("import mr-math-redundant redundant.json")
    # redundant_row: 3 steps, of which one has two sub-steps.
    typed("datasets")
    typed("datasets --json")
    typed("datasets rename sums new")
    # Nobody can be asked here.
    typed("datasets delete new")
    save_judgments(sqlite_store, mini.id, [judge(trace, Mode.ONLINE) for trace in traces])
    typed("datasets delete new --evaluator mini --yes")
    typed("datasets delete new --yes")
    assert [row.name for row in list_datasets(sqlite_store)] == ["mr-math-redundant"]


def test_jobs_are_listed_cancelled_and_deleted_once_they_have_ended(typed, sqlite_store):
    dataset_id = add(sqlite_store)[0].dataset_id
    for mode in ("online", "offline"):
        start_job(sqlite_store, dataset_id, evaluator="mini", spec="mini", fingerprint="f", mode=mode)
    typed("jobs")
    typed("jobs delete 1 --yes")
    typed("jobs cancel 1")
    typed("jobs delete --yes")
    assert [job.id for job in list_jobs(sqlite_store)] == [2]
    assert '"mode": "offline"' in typed.run("jobs --json").out


def test_the_first_user_is_added_and_can_log_in(typed, sqlite_store):
    typed("user list")
    typed("user add ada --role admin --password-stdin", stdin=f"{PASSWORD}\nmore\n")
    assert user_of(sqlite_store, log_in(sqlite_store, "ada", PASSWORD, "")).role is Role.ADMIN
    typed("user add bob --role viewer --password-stdin", stdin=PASSWORD)


def test_a_key_lets_a_program_in_until_the_password_changes(typed, sqlite_store):
    user(sqlite_store)
    key = typed.run("user key ada").out.strip()
    assert user_of(sqlite_store, key).name == "ada"
    typed("user password ada --password-stdin", stdin="another password")
    assert user_of(sqlite_store, key) is None
    typed("user deactivate ada")
    typed("user key ada")


def test_a_role_a_password_and_a_deactivation(typed, sqlite_store):
    user(sqlite_store)
    user(sqlite_store, "Grace Hopper")
    typed("user role ada adjudicator")
    token = open_login(sqlite_store, find_user(sqlite_store, "ada"))
    typed("user password ada --password-stdin", stdin="another password")
    assert user_of(sqlite_store, token) is None
    typed("user deactivate ada")
    typed("user list")
    typed("user deactivate 'Grace Hopper'")
    typed("user password ada --password-stdin", stdin=PASSWORD)


@pytest.mark.parametrize(("again", "code"), [(PASSWORD, 0), ("another password", 2)])
def test_a_password_is_asked_for_twice_and_not_shown(sqlite_store, again, code):
    command = ["-m", "stepsight", "user", "add", "ada", "--role", "admin", "--db", sqlite_store.name]
    shell = [sys.executable, "-c", TERMINAL, sys.executable, *command]
    with subprocess.Popen(shell, stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=ROOT) as process:
        printed = b""
        # The terminal echoes what is typed before the command turns that off.
        for prompt, answer in ((b"Password of ada: ", PASSWORD), (b"Once more: ", again)):
            while not printed.endswith(prompt):
                printed += (letter := process.stdout.read(1))
                assert letter, printed
            process.stdin.write(f"{answer}\n".encode())
            process.stdin.flush()
        printed += process.stdout.read()
        assert process.wait(30) == code
    assert PASSWORD.encode() not in printed
    assert [row.name for row in list_users(sqlite_store)] == (["ada"] if code == 0 else [])
    assert (b"The two passwords differ." in printed) == (code == 2)


def test_a_store_is_backed_up_and_restored(typed, sqlite_store, tmp_path):
    labelled(sqlite_store)
    assert "rows" in typed.run("backup monday.backup").out
    typed("backup monday.backup")
    assert typed.run("restore monday.backup --db new.db").code == 0
    with open_store(str(tmp_path / "new.db")) as store:
        assert [dataset.name for dataset in list_datasets(store)] == ["sums"]
    typed("restore monday.backup")
    replaced = typed.run("restore monday.backup --force")
    (aside,) = tmp_path.glob("store.before-*.db")
    assert (replaced.code, aside.name in replaced.out) == (0, True)
