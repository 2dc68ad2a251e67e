"""The records of one run, for people: verdicts, plans, attempts, notes, seal and receipt."""

import base64
import binascii
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from rich.console import RenderableType
from rich.padding import Padding
from rich.table import Column, Table
from rich.text import Text
from rich.tree import Tree

from podium_cli.words import DEMO_NOTE, counted, demo_mark, moment, plain, receipt_words, usd
from podium_core.domain.pool import Card

Record = Mapping[str, Any]

_PPM_PER_PERCENT = 10_000
_SHOWN_CHANCES = 4
_SHOWN_SKILLS = 3
_UNSEEN = {False: "(not shown to this key, or erased)", True: "(never kept: only its commitment)"}
_RULES = {
    "default.allow": "nothing stands against it",
    "client.only": "the request names others only",
    "client.except": "the request leaves it out",
    "client.named": "the request names another",
    "price.unknown": "its price is not known and money is limited",
    "budget.unaffordable": "it costs more than the run may",
    "health.down": "it has been failing",
    "health.paused": "its provider takes no more requests for now",
    "health.unconfigured": "its provider key is missing",
    "capability.context": "the messages are longer than its window",
    "capability.image": "it cannot see images",
}
"""What a rule id says in words; ids that are made of parts are told by `rule_words`."""


def rule_words(rule_id: str) -> str:
    """Return a verdict's rule in words; empty for a rule that this version does not know."""
    if rule_id in _RULES:
        return _RULES[rule_id]
    owner, _, rest = rule_id.partition(".")
    if owner in ("tenant", "key") and rest.count(".") == 1:
        what, kind = rest.split(".")
        verb = "allow others only" if kind == "only" else "exclude it"
        return f"the {owner}'s lists of {what} {verb}"
    return f"it lacks {rest}" if owner == "capability" else ""


class RecordView:
    """Renders the answer of audit's `GET /v1/runs/{id}`."""

    def __init__(
        self,
        page: Mapping[str, Any],
        demo_workers: frozenset[str],
        cards: Mapping[str, Card] | None = None,
    ) -> None:
        self._demo = demo_workers
        self._cards = cards or {}
        self._page = page
        self._records: Sequence[Record] = [_leaf(each) for each in page.get("records") or ()]
        self._not_kept = {
            part.get("part_id")
            for part in page.get("contents") or ()
            if isinstance(part, dict) and part.get("not_kept")
        }
        self._texts = {
            str(part.get("part_id")): text
            for part in page.get("contents") or ()
            if isinstance(part, dict) and (text := _text(part)) is not None
        }

    def render(self, *, with_content: bool) -> Iterator[RenderableType]:
        """Yield the parts from top to bottom."""
        yield from self._head()
        yield from self._verdicts()
        yield from (self._plan(plan, with_content=with_content) for plan in self._of_type("plan"))
        yield from self._attempts()
        yield from self._notes()
        if with_content:
            yield from self._contents()
        yield from self._end()

    def _of_type(self, *types: str) -> list[Record]:
        return [record for record in self._records if record.get("type") in types]

    def _name(self, worker_id: object) -> Text:
        worker = str(worker_id)
        return Text.assemble((worker, "green"), (demo_mark(worker in self._demo), "yellow"))

    def _head(self) -> Iterator[RenderableType]:
        for opened in self._of_type("opened"):
            facts = opened["facts"]
            yield Text.assemble(("run ", "bold"), str(opened.get("run_id")))
            yield Text(
                f"  asked by {facts['principal_id']} of {opened.get('tenant_id')}, model"
                f" {facts['requested_model']}, at {moment(opened.get('time_us'))}"
            )
            if isinstance(erased := self._page.get("erased_under_leaf"), int):
                yield Text(f"  content erased under leaf {erased}", style="red")
            if facts["refusal_reason"]:
                yield Text(f"  refused: {facts['refusal_reason']}", style="red")

    def _verdicts(self) -> Iterator[RenderableType]:
        for opened in self._of_type("opened"):
            table = Table("verdict", "worker", "rule", "why", box=None, pad_edge=False, title_justify="left")
            for verdict in opened["facts"]["verdicts"]:
                state = Text("allowed") if verdict["allowed"] else Text("refused", style="red")
                rule_id = str(verdict["rule_id"])
                table.add_row(state, self._name(verdict["worker_id"]), rule_id, rule_words(rule_id))
            yield Padding(table, (1, 2))

    def _plan(self, plan: Record, *, with_content: bool) -> RenderableType:
        facts = plan["facts"]
        why = f", because {facts['fallback_reason']}" if facts["fallback_reason"] else ""
        tree = Tree(
            Text.assemble(
                ("plan ", "bold"),
                f"round {facts['round']}, {counted(len(facts['steps']), 'step')}, source: ",
                (str(facts["source"]), "cyan"),
                why,
            ),
            guide_style="dim",
        )
        for index, step in enumerate(facts["steps"]):
            sees = [f"step {seen}" for seen in step["access"]]
            sees += ["previous round"] if step["sees_previous_round"] else []
            spare = f", else {step['fallback_worker_id']}" if step["fallback_worker_id"] else ""
            line = Text.assemble(
                (f"step {index} ", "bold"),
                self._name(step["worker_id"]),
                (f"{spare}  sees {', '.join(sees) or 'only the question'}", "dim"),
            )
            branch = tree.add(line)
            if chances := _chances_of(facts["choices"], index):
                branch.add(Text(f"chosen by the Conductor: {chances}", style="dim"))
            if card := self._card(str(step["worker_id"])):
                branch.add(Text(f"card now: {card}", style="dim"))
            subtask = self._texts.get(step["subtask_part_id"])
            if with_content and subtask:
                branch.add(Text(plain(subtask), style="dim"))
        return tree

    def _card(self, worker_id: str) -> str:
        """Return a worker's strengths; the card may have changed since the run."""
        card = self._cards.get(worker_id)
        best = sorted(card.skills, key=lambda skill: -skill.accuracy_ppm)[:_SHOWN_SKILLS] if card else []
        return ", ".join(f"{skill.name} {skill.accuracy_ppm / _PPM_PER_PERCENT:.1f} %" for skill in best)

    def _notes(self) -> Iterator[RenderableType]:
        """Tell what happened beside the plan: rounds and their flips, the gate, grades, stops."""
        for note in self._of_type("note"):
            facts = note["facts"]
            told = ", ".join(f"{name} {value}" for name, value in sorted(facts["facts"].items()))
            yield Text.assemble((f"{facts['kind']} ", "bold"), plain(told))

    def _attempts(self) -> Iterator[RenderableType]:
        ends = {end["facts"]["attempt_id"]: end for end in self._of_type("attempt_ended", "attempt_late")}
        table = Table(
            Column("attempt", no_wrap=True),
            Column("worker", overflow="fold"),
            Column("model", overflow="fold"),
            Column("outcome", overflow="fold"),
            Column("tokens\nin/out", no_wrap=True),
            Column("ms", no_wrap=True),
            Column("cost", overflow="fold"),
            box=None,
            pad_edge=False,
        )
        for begun in self._of_type("attempt_begun"):
            facts = begun["facts"]
            end = ends.get(facts["attempt_id"])
            table.add_row(
                f"{facts['kind']} {facts['step_index']}",
                self._name(facts["worker_id"]),
                f"{facts['provider_model']} at {facts['endpoint_host']}",
                *_ending(end, facts),
            )
        if table.row_count:
            yield Padding(table, (1, 2))

    def _contents(self) -> Iterator[RenderableType]:
        for record in self._records:
            for entry in record.get("contents") or ():
                text = self._sent(record) if entry["name"] == "sent" else self._texts.get(entry["part_id"])
                said = plain(text) if text is not None else _UNSEEN[entry["part_id"] in self._not_kept]
                part_id = f" {entry['part_id']}" if entry["part_id"] != entry["name"] else ""
                yield Text.assemble((entry["name"], "bold"), (f"{part_id}\n", "dim"), said)

    def _sent(self, begun: Record) -> str | None:
        """Return the body that an attempt sent, joined from its parts; None when one is not there."""
        joined = bytearray()
        for piece in begun["facts"]["body"]["layout"]:
            text = self._texts.get(piece["part_id"])
            if text is None:
                return None
            joined += text.encode()[piece["from"] : piece["to"]]
        return joined.decode("utf-8", "replace")

    def _end(self) -> Iterator[RenderableType]:
        seals = self._of_type("sealed")
        if not seals:
            yield Text("The run is still open.", style="yellow")
        for seal in seals:
            facts = seal["facts"]
            reason = f" ({facts['error_reason']})" if facts["error_reason"] else ""
            yield Text(
                f"{facts['outcome']}{reason} at {moment(seal.get('time_us'))};"
                f" {counted(facts['attempt_count'], 'attempt')}, {usd(facts['cost_usd_micros'])},"
                f" {counted(facts['record_count'], 'record')}"
            )
        yield Text.assemble(("receipt ", "bold"), receipt_words(self._page.get("receipt")))
        if any(begun["facts"]["worker_id"] in self._demo for begun in self._of_type("attempt_begun")):
            yield Text(DEMO_NOTE, style="dim")


def _chances_of(choices: Sequence[Record], step_index: int) -> str:
    """Return the likeliest workers of one choice, with their probability over the eligible pool."""
    chances = [
        chance for choice in choices if choice["step_index"] == step_index for chance in choice["chances"]
    ]
    likeliest = sorted(chances, key=lambda chance: -int(chance["eligible_ppm"]))[:_SHOWN_CHANCES]
    told = [f"{c['worker_id']} {c['eligible_ppm'] / _PPM_PER_PERCENT:.1f} %" for c in likeliest]
    more = len(chances) - len(likeliest)
    return ", ".join(told) + (f", {more} more" if more > 0 else "")


def _ending(end: Record | None, begun: Mapping[str, Any]) -> list[str]:
    if end is None:
        return ["end unknown", "", "", f"at most {usd(begun['max_cost_usd_micros'])}"]
    facts = end["facts"]
    usage = facts["usage"]
    reason = f" ({facts['error_reason']})" if facts["error_reason"] else ""
    late = "late: " if end["type"] == "attempt_late" else ""
    return [
        f"{late}{facts['outcome']}{reason}",
        f"{usage['input_tokens']}/{usage['output_tokens']}",
        f"{facts['latency_us'] / 1000:.0f}",
        usd(facts["cost_usd_micros"]),
    ]


def _leaf(record: Mapping[str, Any]) -> Record:
    inner = record.get("record")
    return inner if isinstance(inner, dict) else record


def _text(part: Mapping[str, Any]) -> str | None:
    """Return a part's text; None when its content is erased."""
    text = part.get("text")
    if isinstance(text, str):
        return text
    try:
        return base64.b64decode(part["data"], validate=True).decode("utf-8", "replace")
    except (KeyError, TypeError, binascii.Error, ValueError):
        return None
