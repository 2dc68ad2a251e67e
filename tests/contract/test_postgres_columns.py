"""Columns arrive in PostgreSQL as what they were."""

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from podium_audit.ports import StoreError
from podium_audit.stores.postgres.columns import Column
from podium_audit.stores.postgres.connection import Session

_TEXTS = st.text(st.characters(codec="utf-8", exclude_characters="\0"))
_VALUES: dict[str, st.SearchStrategy[Any]] = {
    "bigint": st.integers(-(2**63), 2**63 - 1),
    "integer": st.integers(-(2**31), 2**31 - 1),
    "text": _TEXTS,
    "bytea": st.binary(),
    "boolean": st.booleans(),
}


@pytest.mark.parametrize("type_name", _VALUES)
def test_values_arrive_as_they_were(database_url: str, type_name: str) -> None:
    session = Session(database_url, wait_s=5)

    @settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
    @given(st.lists(st.none() | _VALUES[type_name]))
    def arrive(values: list[Any]) -> None:
        with session.use() as connection:
            query = f"SELECT value FROM unnest(%s::{type_name}[]) AS value"
            rows = connection.execute(query, (Column(type_name, values),)).fetchall()
        assert [value for (value,) in rows] == values

    arrive()
    session.close()


@pytest.mark.parametrize(("type_name", "value"), [("bigint", 2**63), ("integer", -(2**31) - 1)])
def test_a_number_that_does_not_fit_is_refused(type_name: str, value: int) -> None:
    with pytest.raises(StoreError, match=type_name):
        Column(type_name, [value])
