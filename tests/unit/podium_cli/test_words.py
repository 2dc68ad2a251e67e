import io

from hypothesis import given
from hypothesis import strategies as st

from podium_cli.words import TidyLines, counted, receipt_words


def leaves(indices: list[int]) -> str:
    words = receipt_words({"leaf_indices": indices, "checkpoint": "log\n9\n"})
    return words.removeprefix("leaves ").partition(";")[0]


def test_neighbours_are_told_as_a_range() -> None:
    assert leaves([0, 1, 2, 3]) == "0 to 3"
    assert leaves([3, 4, 9]) == "3, 4, 9"
    assert leaves([]) == ""


@given(st.lists(st.integers(0, 30), unique=True).map(sorted))
def test_no_leaf_is_lost_or_added(indices: list[int]) -> None:
    told = [part.split(" to ") for part in leaves(indices).split(", ") if part]
    assert [i for part in told for i in range(int(part[0]), int(part[-1]) + 1)] == indices


def test_counts_and_ends_of_lines() -> None:
    assert (counted(1, "step"), counted(2, "step"), counted(0, "step")) == ("1 step", "2 steps", "0 steps")
    file = io.StringIO()
    assert TidyLines(file).write("a  \n  b \n") == len("a  \n  b \n")
    assert file.getvalue() == "a\n  b\n"
