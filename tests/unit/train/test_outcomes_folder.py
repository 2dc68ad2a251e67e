"""A data folder is read whole or refused, and what is wrong with it is named by file and line."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podium_core.domain.errors import PodiumError
from podium_train.outcomes.folder import read_folder
from podium_train.outcomes.items import Source
from tests.unit.train.recorded import write_folder, write_json, write_lines

GYM = "reasoning_gym_outcomes"
PRO = "mmlu_pro_outcomes"
ZERO = "zeroeval_outcomes"


def refusal(root: Path, sources: tuple[Source, ...] | None = None) -> PodiumError:
    with pytest.raises(PodiumError) as caught:
        read_folder(root, sources)
    return caught.value


def test_all_three_sources_become_items_of_one_type(tmp_path: Path) -> None:
    data = read_folder(write_folder(tmp_path))
    assert [item.item_id for item in data.items] == [
        "reasoning_gym/easy/sums/0",
        "reasoning_gym/easy/sums/1",
        "mmlu_pro/7",
        "mmlu_pro/8",
        "zeroeval/crux/c1",
        "zeroeval/gsm/g1",
    ]
    first = data.by_id["reasoning_gym/easy/sums/0"]
    assert (first.family, first.category, first.difficulty) == ("sums", "arithmetic", "easy")
    assert first.accuracy("a/one") == 1.0
    assert first.answers["b/two"][0].answer is None
    assert first.accuracy("c/three") is None
    choice = data.by_id["mmlu_pro/7"]
    assert choice.question.startswith("Which?\nA. this\nB. that")
    assert (choice.answers["x"][0].is_right, choice.answers["x"][0].chars) == (True, 40)
    assert (choice.answers["y"][0].is_right, choice.answers["y"][0].answer) == (False, None)
    assert data.by_id["zeroeval/gsm/g1"].reference == "4"


def test_an_answer_is_right_from_ninety_nine_hundredths_on(tmp_path: Path) -> None:
    item = read_folder(write_folder(tmp_path)).by_id["reasoning_gym/easy/sums/1"]
    assert item.accuracy("a/one") == 0.5


def test_a_source_that_is_not_there_matters_only_when_it_is_asked_for(tmp_path: Path) -> None:
    write_folder(tmp_path)
    (tmp_path / GYM).rename(tmp_path / "elsewhere")
    assert {item.source for item in read_folder(tmp_path).items} == {Source.MMLU_PRO, Source.ZEROEVAL}
    error = refusal(tmp_path, (Source.REASONING_GYM,))
    assert (error.reason, GYM in error.message) == ("DATA_MISSING", True)


def test_an_empty_folder_says_how_to_make_one(tmp_path: Path) -> None:
    error = refusal(tmp_path)
    assert error.reason == "DATA_MISSING"
    assert "podium-train import" in error.message


def test_mean_lengths_of_other_models_are_averaged(tmp_path: Path) -> None:
    write_folder(tmp_path)
    write_json(tmp_path / PRO / "meta.json", {"models": ["x", "y"], "mean_response_chars": [10, 20, 60]})
    item = read_folder(tmp_path).by_id["mmlu_pro/7"]
    assert item.answers["x"][0].chars == 30


GOOD_GYM = {"id": "easy/sums/0", "c": "arithmetic", "w": {"0": [[1.0, "0", 9]]}}
GOOD_QUESTION = {"id": "easy/sums/0", "q": "?", "a": "0"}


@pytest.mark.parametrize(
    ("row", "complaint"),
    [
        ("{broken\n", "not JSON"),
        ("[]\n", "must be a JSON object"),
        (GOOD_GYM | {"id": "hard/sums/0"}, "the id must be easy/"),
        (GOOD_GYM | {"id": "easy/sums"}, "the id must be easy/"),
        (GOOD_GYM | {"id": 3}, "'id' must be text"),
        ({"id": "easy/sums/0", "c": "x"}, "'w' is missing"),
        (GOOD_GYM | {"w": []}, "'w' must be an object"),
        (GOOD_GYM | {"w": {}}, "holds no answer"),
        (GOOD_GYM | {"w": {"9": [[1.0, "0", 9]]}}, "names model '9'"),
        (GOOD_GYM | {"w": {"-1": [[1.0, "0", 9]]}}, "names model '-1'"),
        (GOOD_GYM | {"w": {"0": [[1.5, "0", 9]]}}, "must be a number in 0..1"),
        (GOOD_GYM | {"w": {"0": [[True, "0", 9]]}}, "must be a number in 0..1"),
        ('{"id": "easy/sums/0", "c": "x", "w": {"0": [[NaN, "0", 9]]}}\n', "must be a number in 0..1"),
        (GOOD_GYM | {"w": {"0": [[1.0, "0"]]}}, "[score, answer or null, characters]"),
        (GOOD_GYM | {"w": {"0": [[1.0, 0, 9]]}}, "must be text"),
        (GOOD_GYM | {"w": {"0": [[1.0, "0", -1]]}}, "must be a whole number"),
    ],
)
def test_a_malformed_outcome_is_named_by_file_and_line(tmp_path: Path, row: object, complaint: str) -> None:
    write_folder(tmp_path)
    other = {"id": "easy/sums/5", "c": "arithmetic", "w": {"0": [[1.0, "0", 9]]}}
    write_lines(tmp_path / GYM / "outcomes_easy.jsonl.xz", [other, row])
    questions = [GOOD_QUESTION, GOOD_QUESTION | {"id": "easy/sums/5"}]
    write_lines(tmp_path / GYM / "questions_easy.jsonl.xz", questions)
    error = refusal(tmp_path)
    assert error.reason == "DATA_MALFORMED"
    assert error.message.startswith(f"{GYM}/outcomes_easy.jsonl.xz:2: ")
    assert complaint in error.message


@pytest.mark.parametrize(
    ("folder", "name", "row", "complaint"),
    [
        (
            PRO,
            "outcomes.jsonl.xz",
            {"id": 1, "cat": "c", "q": "?", "o": ["x"], "a": "B", "p": "AA"},
            "'a' must be",
        ),
        (
            PRO,
            "outcomes.jsonl.xz",
            {"id": 1, "cat": "c", "q": "?", "o": ["x"], "a": "A", "p": "A"},
            "'p' must",
        ),
        (
            PRO,
            "outcomes.jsonl.xz",
            {"id": 1, "cat": "c", "q": "?", "o": ["x"], "a": "A", "p": "A?"},
            "'p' must",
        ),
        (
            PRO,
            "outcomes.jsonl.xz",
            {"id": "1", "cat": "c", "q": "?", "o": ["x"], "a": "A", "p": "AA"},
            "'id'",
        ),
        (
            PRO,
            "outcomes.jsonl.xz",
            {"id": 1, "cat": "c", "q": "?", "o": [], "a": "", "p": "AA"},
            "'a' must be",
        ),
        (ZERO, "gsm.jsonl", {"id": "g", "q": "?", "a": "# 1", "w": [[1, "1", 5]]}, "one entry for each of 2"),
        (ZERO, "gsm.jsonl", {"id": "g", "q": "?", "a": "# 1", "w": [None, None]}, "holds no answer"),
        (ZERO, "gsm.jsonl", {"id": "g", "q": "?", "a": "# 1", "w": [[1, "1"], None]}, "entry of x must be"),
    ],
)
def test_the_other_sources_are_as_strict(
    tmp_path: Path, folder: str, name: str, row: object, complaint: str
) -> None:
    write_folder(tmp_path)
    write_lines(tmp_path / folder / name, [row])
    error = refusal(tmp_path)
    assert error.message.startswith(f"{folder}/{name}:1: ")
    assert complaint in error.message


def _drop(name: str) -> Callable[[Path], None]:
    return lambda root: (root / GYM / name).unlink()


def _cut(root: Path) -> None:
    path = root / GYM / "outcomes_easy.jsonl.xz"
    path.write_bytes(path.read_bytes()[:-20])


def _damage(root: Path) -> None:
    (root / GYM / "outcomes_easy.jsonl.xz").write_bytes(b"no xz at all")


def _no_text(root: Path) -> None:
    (root / GYM / "outcomes_easy.jsonl.xz").unlink()
    (root / GYM / "outcomes_easy.jsonl").write_bytes(b"\xff\xfe{}\n")


def _beside(root: Path) -> None:
    write_lines(root / GYM / "outcomes_easy.jsonl", [])


def _question_left(root: Path) -> None:
    rows = [{"id": f"easy/sums/{number}", "q": "?", "a": "0"} for number in range(3)]
    write_lines(root / GYM / "questions_easy.jsonl.xz", rows)


def _question_missing(root: Path) -> None:
    write_lines(root / GYM / "questions_easy.jsonl.xz", [GOOD_QUESTION])


def _question_twice(root: Path) -> None:
    write_lines(root / GYM / "questions_easy.jsonl.xz", [GOOD_QUESTION, GOOD_QUESTION])


def _models_twice(root: Path) -> None:
    write_json(root / GYM / "meta.json", {"models": ["a", "a"]})


def _no_task(root: Path) -> None:
    write_lines(root / ZERO / "unknown.jsonl", [])


def _same_item(root: Path) -> None:
    row = {"id": 7, "cat": "law", "q": "Which?", "o": ["this", "that"], "a": "B", "p": "B-"}
    write_lines(root / PRO / "outcomes.jsonl.xz", [row, row])


@pytest.mark.parametrize(
    ("harm", "named"),
    [
        (_drop("meta.json"), f"{GYM}/meta.json is not there"),
        (_drop("questions_easy.jsonl.xz"), "questions_easy.jsonl.xz is not there"),
        (_drop("outcomes_easy.jsonl.xz"), "holds no outcomes_"),
        (_cut, "outcomes_easy.jsonl.xz:"),
        (_damage, "outcomes_easy.jsonl.xz:1: the compressed file is cut or damaged"),
        (_no_text, "outcomes_easy.jsonl:1: the text from here on is not UTF-8"),
        (_beside, "keep one of the two"),
        (_question_left, "questions_easy.jsonl.xz:3: outcomes_easy.jsonl.xz has no row with this id"),
        (_question_missing, "outcomes_easy.jsonl.xz:2: the id 'easy/sums/1' comes twice, or has no row"),
        (_question_twice, "questions_easy.jsonl.xz:2: the id 'easy/sums/0' comes twice"),
        (_models_twice, "meta.json: 'models' must name"),
        (_no_task, "the task 'unknown'"),
        (_same_item, "the item 'mmlu_pro/7' comes twice"),
    ],
)
def test_a_folder_with_a_defect_is_refused_whole(
    tmp_path: Path, harm: Callable[[Path], None], named: str
) -> None:
    harm(write_folder(tmp_path))
    assert named in refusal(tmp_path).message


json_values = st.recursive(
    st.none() | st.booleans() | st.floats() | st.integers() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("qawcpo01"), inner, max_size=4)
    ),
    max_leaves=8,
)


@given(row=json_values)
def test_no_row_makes_the_reader_fail_otherwise_than_by_naming_it(
    tmp_path_factory: pytest.TempPathFactory, row: object
) -> None:
    root = tmp_path_factory.mktemp("data")
    folder = root / ZERO
    write_json(folder / "meta.json", {"gsm": {"models": ["x"]}})
    write_lines(folder / "gsm.jsonl", [json.dumps(row) + "\n"])
    complaint = ""
    try:
        read_folder(root)
    except PodiumError as error:
        complaint = error.message
    assert not complaint or complaint.startswith(f"{ZERO}/gsm.jsonl:1: ")
