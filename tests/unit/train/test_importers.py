"""Importers turn public sources' own files, here small ones in their formats, into a folder that is read back."""

import base64
import json
import pickle
import random
import resource
import signal
import zipfile
import zlib
from pathlib import Path

import pytest

from podium_core.domain.errors import PodiumError
from podium_train.__main__ import main
from podium_train.outcomes.folder import read_folder
from podium_train.outcomes.importers.imported import Imported, write
from podium_train.outcomes.importers.mathematics_sets import last_boxed
from podium_train.outcomes.importers.zeroeval_results import answer_of
from podium_train.outcomes.items import RecordedSet, Source
from podium_train.outcomes.questions import GraderKind, SetQuestion, read_questions
from tests.unit.train.recorded import write_json, write_lines


def imported(source: str, copy: Path, data: Path, *more: str) -> None:
    assert main(["import", source, "--from", str(copy), "--to", str(data), *more]) == 0


def recorded_from(source: str, copy: Path, data: Path) -> RecordedSet:
    imported(source, copy, data)
    return read_folder(data)


def questions_from(source: str, copy: Path, data: Path, name: str = "") -> tuple[SetQuestion, ...]:
    imported(source, copy, data)
    return read_questions(data, name or source)


def completion(score: float, answer: str | None, response: str) -> dict[str, object]:
    return {"model_answer": answer, "full_model_response": response, "score": score}


def gym_run(copy: Path, run: str, results: list[dict[str, object]], difficulty: str = "easy") -> None:
    path = copy / difficulty / run / "arithmetic" / "gcd.json"
    write_json(path, {"name": "gcd", "category": "arithmetic", "config": {"seed": 45}, "results": results})
    write_json(copy / difficulty / run / "summary.json", {"total_datasets": 1})


def test_reasoning_gym_runs_of_all_models_meet_in_one_item(tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    task = {"question": "gcd(4, 6)?", "expected_answer": "2"}
    three = [
        completion(1.0, "2", "<answer>2</answer>"),
        completion(0.01, None, ""),
        completion(0.0, "3", "3"),
    ]
    gym_run(copy, "openai_o3-mini_20250315_163713", [task | {"completions": three}])
    gym_run(copy, "a_b_c_20250101_000000", [task | completion(0.0, "9", "old run")])
    gym_run(copy, "a_b_c_20250201_000000", [task | completion(1.0, "2", "two")])
    gym_run(copy, "x_y_20250201_000000", [{"question": "gcd(5, 6)?", "expected_answer": "1"} | three[0]])
    (item,) = recorded_from("reasoning-gym-eval", copy, tmp_path / "data").items
    assert (item.item_id, item.category, item.reference) == ("reasoning_gym/easy/gcd/0", "arithmetic", "2")
    assert [(a.score, a.answer, a.chars) for a in item.answers["openai/o3-mini"]] == [
        (1.0, "2", 18),
        (0.01, None, 0),
        (0.0, "3", 1),
    ]
    assert [a.chars for a in item.answers["a/b_c"]] == [3]
    assert "x/y" not in item.answers


def test_answers_to_another_question_are_left_out_aloud(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    gym_run(
        tmp_path, "a_b_20250101_000000", [{"question": "1?", "expected_answer": "2"} | completion(1, "2", "")]
    )
    gym_run(
        tmp_path, "c_d_20250101_000000", [{"question": "3?", "expected_answer": "2"} | completion(1, "2", "")]
    )
    imported("reasoning-gym-eval", tmp_path, tmp_path / "data")
    assert "c/d: 1 answers left out" in capsys.readouterr().out


def mmlu_pro_row(number: object, pred: object, **more: object) -> dict[str, object]:
    row = {
        "question_id": number,
        "question": "Which?",
        "options": ["a", "b"],
        "answer": "B",
        "category": "law",
    }
    return row | {"pred": pred, "model_outputs": "The answer is (B)."} | more


def test_mmlu_pro_results_come_zipped_or_not(tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    write_json(copy / "model_outputs_one_5shots.json", [mmlu_pro_row("70", "B"), mmlu_pro_row(71, None)])
    with zipfile.ZipFile(copy / "model_outputs_two-v0.1_5shots.json.zip", "w") as archive:
        rows = [mmlu_pro_row(70, "A", model_outputs=None, generated_text="A!"), mmlu_pro_row(71, "Z")]
        archive.writestr("model_outputs_two.json", json.dumps(rows))
    write_json(copy / "model_outputs_few_5shots.json", [mmlu_pro_row(70, "B")])
    first, second = recorded_from("mmlu-pro", copy, tmp_path / "data").items
    assert first.item_id == "mmlu_pro/70"
    assert {model: answers[0].answer for model, answers in first.answers.items()} == {
        "one": "B",
        "two-v0.1": "A",
    }
    assert {answers[0].answer for answers in second.answers.values()} == {None}
    assert first.answers["one"][0].chars == 18


def zero_row(output: str, answer: object, **more: object) -> dict[str, object]:
    return {"id": "t-#1", "question": "How many?", "answer": answer, "output": [output]} | more


@pytest.mark.parametrize(
    ("task", "reference", "output", "answer", "right"),
    [
        ("gsm", "# 70000", '{"reasoning": "r", "answer": "$70,000"}', "$70,000", True),
        ("gsm", "# 18", '{"answer": 18}', "18", True),
        ("gsm", "# 18", "eighteen", None, False),
        ("gsm", "# 1210", '{"answer": "640 + 570 = 1210"}', "640 + 570 = 1210", True),
        ("crux", "['a', 'b']", '{"answer": "[\\"a\\", \\"b\\"]"}', '["a", "b"]', True),
        ("crux", "True", '{"answer": "1"}', "1", False),
        ("crux", "'x'", '{"answer": "x"}', "x", True),
        ("math-l5", "\\frac{1}{2}", 'So: {"answer": "$\\\\dfrac{1}{2}$"}', "$\\dfrac{1}{2}$", True),
        ("math-l5", "18", '{"answer": "18.0"}', "18.0", True),
        ("math-l5", "18", '{"answer": "81"}', "81", False),
    ],
)
def test_zeroeval_outputs_are_parsed_and_graded(
    tmp_path: Path, task: str, reference: str, output: str, answer: str | None, *, right: bool
) -> None:
    write_json(tmp_path / "copy" / task / "m.json", [zero_row(output, reference)])
    write_json(tmp_path / "copy" / "zebra-grid" / "m.json", [zero_row(output, "x")])
    (item,) = recorded_from("zeroeval", tmp_path / "copy", tmp_path / "data").items
    (recorded,) = item.answers["m"]
    assert (recorded.answer, recorded.is_right, recorded.chars) == (answer, right, len(output))


def test_an_answer_is_found_in_broken_json_too() -> None:
    assert answer_of('{"reasoning": "a "quote" b", "answer": "4"}') == "4"
    assert answer_of('{"reasoning": "line\nbreak", "answer": "5"}') == "5"
    assert answer_of("{" * 500) is None


def bench_record(index: int, score: object, **more: object) -> dict[str, object]:
    record = {"index": index, "origin_query": f"q{index}", "prediction": "4", "ground_truth": 4}
    return record | {"score": score, "raw_output": "It is 4."} | more


def test_llmrouterbench_takes_the_newest_file_of_each_model(tmp_path: Path) -> None:
    bench = tmp_path / "bench"
    write_json(bench / "aime" / "test" / "gpt-5" / "20250101.json", {"records": [bench_record(1, 0.0)]})
    write_json(
        bench / "aime" / "test" / "gpt-5" / "20250201.json",
        {"records": [bench_record(1, 1.0), bench_record(2, True), bench_record(3, -1)]},
    )
    write_json(bench / "aime" / "test" / "glm" / "20250101.json", {"records": [bench_record(1, 0.5)]})
    data = recorded_from("llmrouterbench", bench, tmp_path / "data")
    assert [item.item_id for item in data.items] == ["llmrouterbench/aime/1", "llmrouterbench/aime/2"]
    assert {item.source for item in data.items} == {Source.LLMROUTERBENCH}
    assert (data.items[0].accuracy("gpt-5"), data.items[0].accuracy("glm")) == (1.0, 0.0)
    assert (data.items[0].reference, data.items[1].accuracy("glm")) == ("4", None)


# --- question sets --------------------------------------------------------------------------------------


def test_math_problems_come_as_files_or_lines(tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    solution = "We get \\boxed{3}, no: $\\boxed{\\frac{1}{2}}$."
    problem = {"problem": "p", "level": "Level 5", "type": "Algebra", "solution": solution}
    write_json(copy / "test" / "algebra" / "7.json", problem)
    write_lines(copy / "math500.jsonl", [{"problem": "q", "answer": "4", "subject": "Geometry", "level": 2}])
    lines, file = questions_from("math", copy, tmp_path / "data")
    assert (lines.family, lines.difficulty, lines.reference) == ("geometry", "level 2", "4")
    assert (file.item_id, file.family, file.difficulty) == ("math/test/algebra/7", "algebra", "level 5")
    assert (file.reference, file.grader) == ("\\frac{1}{2}", GraderKind.MATH)


def test_the_last_box_that_closes_counts() -> None:
    assert last_boxed("\\fbox{a{b}c}") == "a{b}c"
    assert last_boxed("\\boxed{a") is None
    assert last_boxed("none") is None


def test_aime_and_rlpr_are_read_under_their_many_names(tmp_path: Path) -> None:
    write_lines(
        tmp_path / "a" / "aime25.jsonl", [{"Problem": "p", "Answer": "070"}, {"question": "q", "answer": 7}]
    )
    assert [q.reference for q in questions_from("aime", tmp_path / "a", tmp_path / "data")] == ["70", "7"]
    chat = [{"role": "system", "content": "s"}, {"role": "user", "content": "Why?"}]
    row = {"prompt": chat, "ability": "Physics", "reward_model": {"ground_truth": "gravity"}}
    write_lines(tmp_path / "r" / "train.jsonl", [row])
    (question,) = questions_from("rlpr", tmp_path / "r", tmp_path / "data")
    assert (question.question, question.reference, question.category) == ("Why?", "gravity", "Physics")


def test_choices_keep_their_right_option(tmp_path: Path) -> None:
    (tmp_path / "m" / "test").mkdir(parents=True)
    csv = '"What is ""it""?",one,two,three,four,C\n'
    (tmp_path / "m" / "test" / "high_school_physics_test.csv").write_text(csv)
    (question,) = questions_from("mmlu", tmp_path / "m", tmp_path / "data")
    assert question.question.startswith('What is "it"?\nA. one\nB. two\nC. three')
    assert (question.reference, question.family) == ("C", "high school physics")
    (tmp_path / "g").mkdir()
    header = "Question,Correct Answer,Incorrect Answer 1,Incorrect Answer 2,Incorrect Answer 3,Subdomain"
    rows = "".join(f"Why {number}?,right,no,never,not,Optics\n" for number in range(20))
    (tmp_path / "g" / "gpqa_diamond.csv").write_text(f"{header}\n{rows}")
    found = questions_from("gpqa", tmp_path / "g", tmp_path / "data")
    assert all(f"\n{question.reference}. right\n" in f"{question.question}\n" for question in found)
    assert len({question.reference for question in found}) == 4


def lcb_row(**more: object) -> dict[str, object]:
    packed = base64.b64encode(
        zlib.compress(pickle.dumps(json.dumps([{"input": "3\n", "output": "9"}])))
    ).decode()
    return {
        "question_id": "abc_1",
        "question_title": "Squares",
        "question_content": "Square it.",
        "platform": "atcoder",
        "difficulty": "easy",
        "starter_code": "",
        "public_test_cases": json.dumps([{"input": "2\n", "output": "4"}]),
        "private_test_cases": packed,
        "metadata": "{}",
    } | more


def test_livecodebench_cases_become_checks(tmp_path: Path) -> None:
    call = lcb_row(
        question_id="2",
        starter_code="class Solution:\n    def add(self, a, b):",
        metadata='{"func_name": "add"}',
        public_test_cases=json.dumps([{"input": "[1]\n2", "output": "3"}]),
        private_test_cases="[]",
    )
    write_lines(tmp_path / "copy" / "test.jsonl", [lcb_row(), call])
    program, function = questions_from("livecodebench", tmp_path / "copy", tmp_path / "data")
    assert json.loads(program.reference) == {
        "kind": "programs",
        "cases": [{"stdin": "2\n", "stdout": "4"}, {"stdin": "3\n", "stdout": "9"}],
    }
    assert json.loads(function.reference) == {
        "kind": "calls",
        "function": "add",
        "cases": [{"args": [[1], 2], "value": 3}],
    }
    assert program.grader is GraderKind.CODE


class Evil:
    def __reduce__(self) -> tuple[object, ...]:
        return (print, ("it ran",))


def test_a_pickle_that_names_anything_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    packed = base64.b64encode(zlib.compress(pickle.dumps(Evil()))).decode()
    write_lines(tmp_path / "copy" / "test.jsonl", [lcb_row(private_test_cases=packed)])
    arguments = ["import", "livecodebench", "--from", str(tmp_path / "copy"), "--to", str(tmp_path / "data")]
    assert main(arguments) == 1
    said = capsys.readouterr()
    assert "test.jsonl:1: 'private_test_cases' cannot be unpacked" in said.err
    assert "it ran" not in said.out
    assert not (tmp_path / "data").exists()


def test_bigcodebench_tests_go_into_the_check(tmp_path: Path) -> None:
    row = {
        "task_id": "BigCodeBench/3",
        "instruct_prompt": "Write it.",
        "entry_point": "task_func",
        "test": "class T",
    }
    write_lines(tmp_path / "copy" / "BigCodeBench-Hard.jsonl", [row])
    (question,) = questions_from("bigcodebench", tmp_path / "copy", tmp_path / "data")
    assert (question.item_id, question.difficulty) == ("bigcodebench/BigCodeBench-3", "hard")
    assert json.loads(question.reference) == {"kind": "shared_tests", "source": "class T"}


# --- what can go wrong ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "source",
    ["reasoning-gym-eval", "mmlu-pro", "zeroeval", "llmrouterbench", "math", "mmlu", "rlpr", "aime", "gpqa"],
)
def test_a_wrong_folder_is_refused_and_nothing_is_written(
    tmp_path: Path, source: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "copy").mkdir()
    assert main(["import", source, "--from", str(tmp_path / "copy"), "--to", str(tmp_path / "data")]) == 1
    assert "is it the copy's right folder?" in capsys.readouterr().err
    assert main(["import", source, "--from", str(tmp_path / "none"), "--to", str(tmp_path / "data")]) == 1
    assert not (tmp_path / "data").exists()


def test_an_import_replaces_only_when_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    gym_run(
        tmp_path, "a_b_20250101_000000", [{"question": "1?", "expected_answer": "2"} | completion(1, "2", "")]
    )
    data = tmp_path / "data"
    imported("reasoning-gym-eval", tmp_path, data)
    arguments = ["import", "reasoning-gym-eval", "--from", str(tmp_path), "--to", str(data)]
    assert main(arguments) == 1
    assert "say --replace" in capsys.readouterr().err
    imported("reasoning-gym-eval", tmp_path, data, "--replace")
    assert len(read_folder(data).items) == 1


def test_question_sets_share_their_folder(tmp_path: Path) -> None:
    write_lines(tmp_path / "a" / "x.jsonl", [{"problem": "p", "answer": "1"}])
    write_lines(tmp_path / "b" / "x.jsonl", [{"problem": "q", "answer": "4", "subject": "S", "level": 2}])
    imported("aime", tmp_path / "a", tmp_path / "data")
    imported("math", tmp_path / "b", tmp_path / "data")
    assert len(read_questions(tmp_path / "data", "aime") + read_questions(tmp_path / "data", "math")) == 2
    with pytest.raises(PodiumError, match="no questions/gpqa"):
        read_questions(tmp_path / "data", "gpqa")


def test_a_folder_that_cannot_be_written_keeps_nothing(tmp_path: Path) -> None:
    (tmp_path / "data").write_text("a file stands in the way")
    with pytest.raises(PodiumError) as caught:
        write(Imported("x_outcomes", {"outcomes": [{"id": 1}]}), tmp_path / "data")
    assert caught.value.reason == "DATA_NOT_WRITTEN"


def test_a_row_that_cannot_be_written_leaves_the_old_import_alone(tmp_path: Path) -> None:
    write(Imported("x_outcomes", {"outcomes": [{"id": 1}]}), tmp_path)
    with pytest.raises(TypeError):
        write(Imported("x_outcomes", {"outcomes": [{"id": object()}]}), tmp_path, replace=True)
    assert (tmp_path / "x_outcomes" / "outcomes.jsonl.xz").exists()
    assert [path.name for path in tmp_path.iterdir()] == ["x_outcomes"]


def test_a_disk_that_is_full_keeps_nothing_and_says_so(tmp_path: Path) -> None:
    write(Imported("x_outcomes", {"outcomes": [{"id": 1}]}), tmp_path)
    noise = "".join(random.Random(1).choices("abcdefghijklmnopqrstuvwxyz", k=400_000))
    former = resource.getrlimit(resource.RLIMIT_FSIZE)
    ignored = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (50_000, former[1]))
    try:
        with pytest.raises(PodiumError, match="nothing was kept"):
            write(Imported("x_outcomes", {"outcomes": [{"id": noise}]}), tmp_path, replace=True)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, former)
        signal.signal(signal.SIGXFSZ, ignored)
    assert [path.name for path in tmp_path.iterdir()] == ["x_outcomes"]
