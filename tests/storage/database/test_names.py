from stepsight.storage.database.schema import check_name
from tests.cases import each
from tests.messages import refused


def test_a_name_in_any_script():
    assert check_name("MR-MATH (größer) 数学", "the name") == "MR-MATH (größer) 数学"
    assert check_name("x" * 200, "the name")


@each("name", ["", " ", " x", "x\n", "a\nb", "a\x00", "a\u200bb", "x" * 201, "\ud800"])
def test_an_invalid_name_is_refused(name):
    with refused():
        check_name(name, "the name")
