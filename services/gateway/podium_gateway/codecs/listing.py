"""Lists as OpenAI's clients page through them: `after`, `limit` and `order`, then `has_more` and the ends."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from podium_core.domain.errors import PodiumError
from podium_gateway.codecs.fields import as_choice, as_string, refuse

LIST_PARAMETERS = ("after", "limit", "order")
ORDERS = ("asc", "desc")
MAX_LISTED = 100

_DEFAULT = "20"
_MAX_ID = 256
_MAX_DIGITS = 3


@dataclass(frozen=True, slots=True)
class ListWanted:
    """Which part of a list: at most `limit` items behind the one called `after`, if it is not empty."""

    after: str
    limit: int
    is_descending: bool


def list_wanted(query: Mapping[str, str], *, order: str = "asc", others: Sequence[str] = ()) -> ListWanted:
    """Return what is asked for; `order` holds unless another is given, `others` are further parameters.

    Raises PodiumError (INVALID_REQUEST) naming the parameter.
    """
    for name in query:
        if name not in (*LIST_PARAMETERS, *others):
            known = ", ".join((*LIST_PARAMETERS, *others))
            raise refuse(name[:64], f"unknown parameter; this list takes {known}", reason="UNKNOWN_PARAMETER")
    limit = query.get("limit", _DEFAULT)
    if not (limit.isascii() and limit.isdigit() and len(limit) <= _MAX_DIGITS):
        raise _bad_limit()
    if not 1 <= int(limit) <= MAX_LISTED:
        raise _bad_limit()
    return ListWanted(
        as_string(query.get("after", ""), "after", at_most=_MAX_ID),
        int(limit),
        as_choice(query.get("order", order), "order", ORDERS) == "desc",
    )


def list_part(items: Sequence[Mapping[str, object]], wanted: ListWanted) -> dict[str, object]:
    """Return the part that is wanted of a list that is whole; raise PodiumError when `after` is not in it."""
    ordered = list(reversed(items)) if wanted.is_descending else list(items)
    start = 0
    if wanted.after:
        places = [place for place, item in enumerate(ordered) if item["id"] == wanted.after]
        if not places:
            raise refuse("after", "this list has no such item; send an id that it gave")
        start = places[0] + 1
    part = ordered[start : start + wanted.limit]
    return list_object(part, has_more=start + len(part) < len(ordered))


def list_object(items: Sequence[Mapping[str, object]], *, has_more: bool) -> dict[str, object]:
    """Return a list, or a part of one."""
    return {
        "object": "list",
        "data": list(items),
        "first_id": items[0]["id"] if items else None,
        "last_id": items[-1]["id"] if items else None,
        "has_more": has_more,
    }


def _bad_limit() -> PodiumError:
    return refuse("limit", f"must be a number between 1 and {MAX_LISTED}")
