"""Reading YAML: text stays text, and whatever is in the file, the error is ours and has a line."""

from contextlib import suppress
from pathlib import Path
from typing import Annotated

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import Field

from podium_core.config.money import to_millionths
from podium_core.config.yaml_file import MAX_FILE_BYTES, Ident, ListOf, Section, read_document
from podium_core.domain.errors import PodiumError


class Item(Section):
    name: Ident
    note: str | None = None


class File(Section):
    items: ListOf[Item] = ()
    title: str = ""


def _read(tmp_path: Path, text: str | bytes) -> File:
    path = tmp_path / "file.yaml"
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return read_document(path, File).content


def test_scalars_are_text_until_the_model_says_otherwise(tmp_path: Path) -> None:
    content = _read(
        tmp_path, "title: no\nitems:\n- {name: 1.10, note: 2027-01-01}\n- {name: 'null', note: ~}"
    )
    assert content.title == "no"
    assert [(item.name, item.note) for item in content.items] == [("1.10", "2027-01-01"), ("null", None)]


def test_a_field_without_a_value_is_as_good_as_absent(tmp_path: Path) -> None:
    assert _read(tmp_path, "items:\n").items == ()


class NotEmpty(Section):
    items: Annotated[tuple[Item, ...], Field(min_length=1)]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("items: []", "file.yaml line 1: items: may not be empty"),
        ("items:\n- {nme: a}", "line 2: items[0].name: this field is required"),
    ],
)
def test_a_list_is_not_called_empty_because_its_items_are_wrong(text: str, said: str, tmp_path: Path) -> None:
    (tmp_path / "file.yaml").write_text(text)
    with pytest.raises(PodiumError) as failed:
        read_document(tmp_path / "file.yaml", NotEmpty)
    assert said in failed.value.message
    assert ("may not be empty" in failed.value.message) == ("[]" in text)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("title: [", "file.yaml line 1: no valid YAML"),
        ("title: x\n\titems: 1", "file.yaml line 2: no valid YAML"),
        ("a: &x 1\nitems: [*x, *x]", "anchors and aliases are not supported"),
        ("items: &x [*x]", "anchors and aliases are not supported"),
        ("title: x\n---\ntitle: y", "line 2: no valid YAML"),
        ("? [a, b]\n: 1", "a field's name must be plain text"),
        ("title: {a: 1}", "line 1: title: must be plain text"),
        (b"title: x\nitems: \xff", "file.yaml line 2: the file must be UTF-8 text"),
        ('title: "\\UFFFFFFFF"', "characters that YAML forbids"),
        ('title: "\\uD800"', "file.yaml line 1: no valid YAML: an escape"),
        ("%YAML 9.9\n---\ntitle: x", "no valid YAML"),
        ("title: \x00", "characters that YAML forbids"),
        ("[" * 5_000, "nested too deeply"),
        ("#" * (MAX_FILE_BYTES + 1), "the file may take"),
    ],
)
def test_what_cannot_be_read_is_said(tmp_path: Path, text: str | bytes, said: str) -> None:
    with pytest.raises(PodiumError) as failed:
        _read(tmp_path, text)
    assert said in failed.value.message


def test_a_tag_means_nothing(tmp_path: Path) -> None:
    assert _read(tmp_path, "title: !!python/name:os.system 7").title == "7"


def test_a_missing_file_is_named_without_its_path(tmp_path: Path) -> None:
    with pytest.raises(PodiumError, match=r"cannot read file\.yaml: No such file") as failed:
        read_document(tmp_path / "file.yaml", File)
    assert str(tmp_path) not in failed.value.message


def test_five_mistakes_are_shown_at_once_in_file_order(tmp_path: Path) -> None:
    with pytest.raises(PodiumError) as failed:
        _read(tmp_path, "items:\n" + "- {}\n" * 7 + "x: 1\n")
    shown = failed.value.message.split("; ")
    assert shown[0] == "file.yaml line 2: items[0].name: this field is required"
    assert [part.split(":")[0] for part in shown[:5]] == [f"file.yaml line {n}" for n in range(2, 7)]
    assert shown[5] == "and 3 more"


documents = st.recursive(
    st.text(max_size=8)
    | st.sampled_from(["items", "title", "name", "note", "~", "*a", "&a x", "!!int 1", ": ", "- "]),
    lambda inner: (
        st.lists(inner, max_size=4).map(lambda parts: "[" + ", ".join(parts) + "]")
        | st.lists(st.tuples(inner, inner), max_size=4).map(
            lambda pairs: "{" + ", ".join(f"{key}: {value}" for key, value in pairs) + "}"
        )
        | st.lists(inner, max_size=4).map("\n".join)
    ),
    max_leaves=12,
)


@given(documents | st.binary(max_size=60))
def test_no_file_raises_anything_but_our_own_error(
    tmp_path_factory: pytest.TempPathFactory, text: str | bytes
) -> None:
    try:
        data = text.encode() if isinstance(text, str) else text
    except UnicodeEncodeError:
        return
    path = tmp_path_factory.getbasetemp() / "fuzz.yaml"
    path.write_bytes(data)
    with suppress(PodiumError):
        read_document(path, File)


@given(st.integers(0, 10**14))
def test_money_is_exact(micros: int) -> None:
    whole, rest = divmod(micros, 10**6)
    assert to_millionths(f"{whole}.{rest:06d}") == micros
    assert to_millionths(f"{whole}.{rest:06d}000") == micros


@given(st.text(max_size=12))
def test_other_texts_are_no_money(text: str) -> None:
    try:
        micros = to_millionths(text)
    except ValueError:
        return
    assert micros >= 0
    assert set(text) <= set("0123456789.")


@pytest.mark.parametrize(
    "value", [0.1, 1, None, "", ".", "1.2.3", "٣", "1_000", "+1", "-0", "1e3", "9" * 30, "nan"]
)
def test_money_is_plain_decimal_text(value: object) -> None:
    with pytest.raises(ValueError):
        to_millionths(value)
