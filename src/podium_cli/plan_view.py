"""A plan on the terminal: what the Conductor was told, what it wrote, what was read, how sure it was."""

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from podium_cli.planning_client import Planned
from podium_cli.words import plain, usd
from podium_core.domain.plan import Step
from podium_core.domain.plan_prompt import PlanPrompt
from podium_core.orchestration.ports import WorkerChance

_PERCENT_PPM = 10_000


def render(planned: Planned, prompt: PlanPrompt, *, with_prompt: bool) -> RenderableType:
    """Return everything about a plan. `prompt` is shown when the engine had none of its own."""
    reply = planned.reply
    parts: list[RenderableType] = []
    if with_prompt:
        parts += _prompt(reply.prompt or prompt, is_own=reply.prompt is not None)
    parts += _section("raw text", reply.raw_text or "(none: nothing was generated)")
    parts += [Text("\nplan", style="bold"), Padding(_steps(reply.plan.steps), (0, 2))]
    parts += [Text("\nchoice probabilities", style="bold"), Padding(_chances(planned), (0, 2))]
    parts += [Text(""), _facts(planned)]
    return Group(*parts)


def _prompt(prompt: PlanPrompt, *, is_own: bool) -> list[RenderableType]:
    note = "" if is_own else " (this engine needs none; a model would be told this)"
    parts = _section(f"system{note}", prompt.system) + _section("user", prompt.user)
    return parts + (_section("beginning of the reply", prompt.prefill) if prompt.prefill else [])


def _section(title: str, text: str) -> list[RenderableType]:
    return [Text(f"\n{title}", style="bold"), Padding(Text(plain(text)), (0, 2))]


def _steps(steps: tuple[Step, ...]) -> RenderableType:
    if not steps:
        return Text("three empty lists: the answer stands")
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for column in ("step", "worker", "sees", "subtask"):
        table.add_column(column, style="dim" if column == "step" else "")
    for index, step in enumerate(steps):
        sees = [str(seen) for seen in step.access.steps] + ["last round"] * step.access.previous_round
        subtask = plain(step.subtask) or "(the question itself)"
        table.add_row(str(index), Text(step.worker_id), ", ".join(sees) or "-", Text(subtask))
    return table


def _chances(planned: Planned) -> RenderableType:
    choices = planned.reply.chances
    if not any(choices):
        return Text(f"none: the engine {planned.engine} has no probabilities")
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for column in ("step", "worker", "over the eligible", "raw"):
        table.add_column(column, justify="left" if column == "worker" else "right")
    for index, chances in enumerate(choices):
        for chance in sorted(chances, key=_likeliest_first):
            table.add_row(
                str(index), Text(chance.worker_id), _percent(chance.eligible_ppm), _percent(chance.raw_ppm)
            )
    return table


def _likeliest_first(chance: WorkerChance) -> tuple[int, str]:
    return -chance.eligible_ppm, chance.worker_id


def _percent(ppm: int) -> str:
    return f"{ppm / _PERCENT_PPM:.2f} %"


def _facts(planned: Planned) -> RenderableType:
    reply = planned.reply
    rows = Table.grid(padding=(0, 2))
    facts = [
        ("engine", planned.engine),
        ("source", reply.plan.source.value),
        ("generations", str(reply.generation_count)),
        ("time", f"{reply.latency_us / 1_000:.1f} ms"),
        ("tokens", f"{reply.usage.input_tokens} in, {reply.usage.output_tokens} out"),
        ("seed", str(reply.seed)),
        ("digest", reply.model_digest),
    ]
    if reply.attempts:
        facts.append(("cost", usd(sum(attempt.cost_usd_micros for attempt in reply.attempts))))
    if reply.fallback_reason:
        facts.append(("less than asked", reply.fallback_reason))
    if planned.run_id:
        facts.append(("recorded as", planned.run_id))
    for name, value in facts:
        rows.add_row(Text(name, style="dim"), Text(value))
    return rows
