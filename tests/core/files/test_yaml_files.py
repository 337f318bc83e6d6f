from stepsight.core.files.yaml_files import read_yaml
from tests.cases import each
from tests.messages import refused

# Nine items, each of nine of the one before: read in a moment, and gone through by nobody.
BOMB = "a0: &a0 [1]\n" + "".join(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]\n" for n in range(1, 30))


def write(folder, **texts):
    for name, text in texts.items():
        (folder / f"{name}.yaml").write_text(text, encoding="utf-8")


def test_a_file_is_laid_over_the_one_that_it_extends(tmp_path):
    write(
        tmp_path,
        first="a: 1\nb: {c: 2, d: {e: 3, f: [4, 5]}}\ng: [6]\n",
        second="extends: first.yaml\nb: {d: {f: [7]}}\ng: {h: 8}\n",
        third="extends: second.yaml\na: null\nb: {c: 9}\n",
    )
    assert read_yaml(tmp_path / "second.yaml") == {"a": 1, "b": {"c": 2, "d": {"e": 3, "f": [7]}}, "g": {"h": 8}}
    assert read_yaml(tmp_path / "third.yaml") == {"a": None, "b": {"c": 9, "d": {"e": 3, "f": [7]}}, "g": {"h": 8}}
    assert read_yaml(tmp_path / "first.yaml")["g"] == [6]


@each(
    "text",
    [
        "extends: it.yaml",
        "extends: round.yaml",
        "extends: none.yaml",
        "extends: list.yaml",
        "extends: [list.yaml]",
        'extends: "a\\0b"',
        "[" * 100_000,
        "- " * 100_000,
        "a: &a [1, {b: *a}]",
        BOMB,
        "a: 1\nb: {c: 2, c: 3}",
    ],
)
def test_a_file_that_cannot_extend_another_is_refused(tmp_path, text):
    write(tmp_path, it=text, round="extends: it.yaml", list="- a")
    with refused():
        read_yaml(tmp_path / "it.yaml")


def test_the_keys_of_anchors_may_be_given_again(tmp_path):
    write(tmp_path, it="a: &a {b: 1, c: 2}\nd: {<<: *a, b: 3}\n")
    assert read_yaml(tmp_path / "it.yaml")["d"] == {"b": 3, "c": 2}
