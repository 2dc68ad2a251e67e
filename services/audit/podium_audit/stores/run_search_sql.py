"""A search for runs as SQL that SQLite and PostgreSQL both read: its text is constant, values are parameters.

With facets their rows lead: each is an index range in the order of run numbers, newest first.
"""

from collections.abc import Mapping
from typing import Final, LiteralString, NamedTuple

from podium_audit.rows.run_search import RunSearch

_FACET_TABLES: Final[tuple[LiteralString, ...]] = ("f0", "f1", "f2", "f3", "f4", "f5", "f6", "f7")
MAX_FACETS: Final = len(_FACET_TABLES)


class Selection(NamedTuple):
    """`FROM … WHERE …` with parameters as `{name}`, the column of the run's number, and the values."""

    text: LiteralString
    run_no: LiteralString
    values: Mapping[str, object]


def selection(search: RunSearch, *, with_rows: bool, before_no: int | None = None) -> Selection:
    """Return the SQL of a search; `with_rows` joins the rows of runs and seals even where no condition does.

    Raises ValueError for more than `MAX_FACETS` facets.
    """
    if len(search.facets) > MAX_FACETS:
        raise ValueError(f"a search may name {MAX_FACETS} facets")
    values: dict[str, object] = {"tenant": search.tenant_id}
    where: list[LiteralString] = []
    tables: list[LiteralString] = []
    for table, (facet, value) in zip(_FACET_TABLES, search.facets, strict=False):
        values |= {f"{table}_facet": facet.value, f"{table}_value": value}
        join: LiteralString = (
            f"JOIN run_facets {table} ON {table}.run_no = f0.run_no" if tables else f"run_facets {table}"
        )
        tables.append(join)
        where.append(f"{table}.tenant_id = {{tenant}}")
        where.append(f"{table}.facet = {{{table}_facet}} AND {table}.value = {{{table}_value}}")
    lead: LiteralString = "f0" if tables else "runs"
    on_runs, on_seals = _on_runs(search, values), _on_seals(search, values)
    if not tables:
        tables.append("runs")
        where.append("runs.tenant_id = {tenant}")
    elif with_rows or on_runs:
        tables.append("JOIN runs ON runs.run_no = f0.run_no")
    if with_rows or on_seals:
        tables.append(f"LEFT JOIN seals ON seals.run_no = {lead}.run_no")
    if before_no is not None:
        values["before"] = before_no
        where.append(f"{lead}.run_no < {{before}}")
    text: LiteralString = f"FROM {' '.join(tables)} WHERE {' AND '.join([*where, *on_runs, *on_seals])}"
    return Selection(text, f"{lead}.run_no", values)


def _on_runs(search: RunSearch, values: dict[str, object]) -> list[LiteralString]:
    where: list[LiteralString] = []
    if search.principal_id is not None:
        values["principal"] = search.principal_id
        where.append("runs.principal_id = {principal}")
    if search.kind is not None:
        values["kind"] = search.kind
        where.append("runs.kind = {kind}")
    if search.opened_from_us is not None:
        values["opened_from"] = search.opened_from_us
        where.append("runs.opened_us >= {opened_from}")
    if search.opened_before_us is not None:
        values["opened_before"] = search.opened_before_us
        where.append("runs.opened_us < {opened_before}")
    return where


def _on_seals(search: RunSearch, values: dict[str, object]) -> list[LiteralString]:
    where: list[LiteralString] = []
    if search.least_cost_usd_micros is not None:
        values["least_cost"] = search.least_cost_usd_micros
        where.append("seals.cost_usd_micros >= {least_cost}")
    if search.most_cost_usd_micros is not None:
        values["most_cost"] = search.most_cost_usd_micros
        where.append("seals.cost_usd_micros <= {most_cost}")
    if search.is_open is not None:
        where.append("seals.run_no IS NULL" if search.is_open else "seals.run_no IS NOT NULL")
    return where
