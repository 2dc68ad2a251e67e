"""A run as a tree in the terminal: plan, steps and answer while they happen, then cost and receipt."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.spinner import Spinner
from rich.table import Table
from rich.text import Text
from rich.tree import Tree

from podium_cli.gateway_client import News
from podium_cli.words import DEMO_NOTE, counted, demo_mark, plain, receipt_words, usd

_SUBTASK_LENGTH = 96


@dataclass(slots=True)
class _StepState:
    plan: Mapping[str, Any]
    worker: str
    state: str = "waiting"
    end: Mapping[str, Any] = field(default_factory=dict)


class RunView:
    """Takes news of a run and renders what is known so far."""

    def __init__(self, demo_workers: frozenset[str] = frozenset()) -> None:
        self.demo_workers = demo_workers
        self._plan: Mapping[str, Any] = {}
        self._steps: list[_StepState] = []
        self._text: list[str] = []
        self.run_id = ""
        self.finished: Mapping[str, Any] | None = None
        self.error: Mapping[str, Any] | None = None

    @property
    def answer(self) -> str:
        """The answer's text so far."""
        return "".join(self._text)

    @property
    def workers(self) -> list[str]:
        """The workers of the newest plan's steps."""
        return [step.worker for step in self._steps]

    def take(self, news: News) -> None:
        """Remember one piece of news."""
        facts = news.facts
        self.run_id = str(facts.get("run_id") or self.run_id)
        if news.kind == "planned":
            self._take_plan(facts.get("plan") or facts)
        elif news.kind == "step_started":
            self._step(facts).state = "working"
        elif news.kind == "step_ended":
            step = self._step(facts)
            step.state, step.end = ("done" if facts.get("ok", True) else "failed"), facts
            step.worker = str(facts.get("worker", step.worker))
        elif news.kind == "text":
            self._text.append(str(facts["text"]))
        elif news.kind == "finished":
            self.finished = facts
            self._fill_gaps(facts)
        else:
            self.error = facts

    def stop(self) -> None:
        """Remember that nobody listens any more: what was not done is not shown as going on."""
        for step in self._steps:
            if not step.end:
                step.state = "stopped" if step.state == "working" else "not begun"

    def render(self, *, is_live: bool = False) -> RenderableType:
        """Return the tree, the answer and, once it is there, the receipt."""
        parts: list[RenderableType] = [self._tree(is_live=is_live)]
        if self._text:
            parts += [Text("\nanswer", style="bold"), Padding(Text(plain(self.answer)), (0, 2))]
        if self.error is not None:
            said = f"failed: {self.error.get('message', 'no reason given')} ({self.error.get('code')})"
            parts += [Text(""), Text(plain(said), style="red")]
            if self._plan and self.run_id:
                parts.append(Text(f"  `podium show {self.run_id}` tells what was tried and what it cost"))
        if self.finished is not None:
            parts += [Text(""), self._end(self.finished)]
        return Group(*parts)

    def _take_plan(self, plan: Mapping[str, Any]) -> None:
        if self._plan and not plan.get("steps"):
            return  # three empty lists: the answer stands, and so does the plan that led to it
        self._plan = plan
        self._steps = [_StepState(step, str(step.get("worker", "?"))) for step in plan.get("steps") or ()]

    def _step(self, facts: Mapping[str, Any]) -> _StepState:
        index = facts.get("step")
        if isinstance(index, int) and 0 <= index < len(self._steps):
            return self._steps[index]
        return _StepState({}, str(facts.get("worker", "?")))

    def _fill_gaps(self, finished: Mapping[str, Any]) -> None:
        """A stream without step events still ends with everything."""
        if not self._plan and finished.get("plan"):
            self._take_plan(finished["plan"])
        for end in finished.get("steps") or ():
            if not self._step(end).end:
                self.take(News("step_ended", end))

    def _tree(self, *, is_live: bool) -> RenderableType:
        if not self._plan:
            return Spinner("dots", "asking the Conductor for a plan") if is_live else Text("no plan was made")
        head = Text.assemble(("run ", "bold"), self.run_id)
        tree = Tree(head, guide_style="dim")
        count = counted(len(self._steps), "step")
        source = str(self._plan.get("source", "unknown"))
        reason = self._plan.get("fallback_reason")
        why = f", because {reason}" if reason else ""
        plan = tree.add(Text.assemble(("plan ", "bold"), f"{count}, source: ", (source, "cyan"), plain(why)))
        for index, step in enumerate(self._steps):
            branch = plan.add(self._step_line(index, step, is_live=is_live))
            subtask = str(step.plan.get("subtask") or "the question itself").replace("\n", " ")
            branch.add(Text(_shortened(plain(subtask)), style="dim"))
        return tree

    def _step_line(self, index: int, step: _StepState, *, is_live: bool) -> RenderableType:
        sees = [str(seen) for seen in step.plan.get("access") or ()]
        if step.plan.get("sees_previous_round"):
            sees.append("previous round")
        planned = str(step.plan.get("worker", step.worker))
        line = Text.assemble(
            (f"step {index} ", "bold"),
            (step.worker, "green"),
            (demo_mark(step.worker in self.demo_workers), "yellow"),
            (f" instead of {planned}" if step.worker != planned else "", "yellow"),
            (f"  sees {', '.join(sees)}" if sees else "", "dim"),
        )
        if step.state == "working" and is_live:
            row = Table.grid(padding=(0, 1))
            row.add_row(line, Spinner("dots", style="cyan"))
            return row
        line.append(_state_words(step), style="red" if step.state == "failed" else "dim")
        return line

    def _end(self, finished: Mapping[str, Any]) -> RenderableType:
        rows = Table.grid(padding=(0, 2))
        billed = (finished.get("usage") or {}).get("billed") or {}
        attempts = sum(len(step.get("attempts") or ()) for step in finished.get("steps") or ())
        attempts += len(finished.get("planning") or ())
        rows.add_row(
            Text("cost", style="bold"),
            f"{usd(finished.get('cost_usd_micros', 0))}, {billed.get('total_tokens', 0)} tokens, "
            f"{counted(attempts, 'provider call')}, "
            f"{finished.get('duration_ms', 0) / 1000:.2f} s",
        )
        if rounds := finished.get("rounds"):
            rows.add_row(
                Text("rounds", style="bold"), ", ".join(_round_words(result) for result in rounds[1:])
            )
        rows.add_row(Text("receipt", style="bold"), receipt_words(finished.get("receipt")))
        if any(step.worker in self.demo_workers for step in self._steps):
            rows.add_row(Text("demo", style="bold yellow"), Text(DEMO_NOTE, style="dim"))
        return rows


def _round_words(result: Mapping[str, Any]) -> str:
    if result.get("failure"):
        return f"no plan ({plain(str(result['failure']))})"
    if result.get("accepted"):
        return "answer accepted"
    return "answer changed" if result.get("changed") else "answer kept"


def _state_words(step: _StepState) -> str:
    if not step.end:
        return f"  {step.state}"
    seconds = step.end.get("latency_ms", 0) / 1000
    words = f"  {step.state} in {seconds:.2f} s, {usd(step.end.get('cost_usd_micros', 0))}"
    return words + (f" ({step.end['error']})" if step.end.get("error") else "")


def _shortened(text: str) -> str:
    return text if len(text) <= _SUBTASK_LENGTH else f"{text[: _SUBTASK_LENGTH - 1]}\N{HORIZONTAL ELLIPSIS}"
