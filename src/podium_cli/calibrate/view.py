"""How a calibration shows: the plan with its cost, the bar while it runs, the measured skills."""

from collections.abc import Sequence

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

from podium_cli.calibrate.plan import PlannedCall
from podium_cli.calibrate.results import SkillScore, WorkerScore
from podium_cli.words import plain, usd

_SHOWN_ITEMS = 3
_LONG = 100


def progress_of(console: Console) -> Progress:
    """Return the live bar; it shows right answers and money besides the count."""
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[right]} right"),
        TextColumn("{task.fields[spent]}"),
        TimeRemainingColumn(),
        console=console,
        transient=True,
    )


def show_plan(console: Console, calls: Sequence[PlannedCall], left: Sequence[PlannedCall]) -> None:
    """Show what would be asked of whom, and the most it can cost."""
    table = Table("worker", "skills", "items", "already measured", "costs at most", box=None, pad_edge=False)
    for worker_id in dict.fromkeys(call.worker.worker_id for call in calls):
        mine = [call for call in calls if call.worker.worker_id == worker_id]
        todo = [call for call in left if call.worker.worker_id == worker_id]
        is_priced = mine[0].worker.price is not None
        table.add_row(
            worker_id,
            str(len({call.item.skill for call in mine})),
            str(len(mine)),
            str(len(mine) - len(todo)),
            usd(sum(call.max_cost_usd_micros for call in todo)) if is_priced else "unknown: no price",
        )
    console.print(table)
    console.print(
        f"In all at most {usd(sum(call.max_cost_usd_micros for call in left))}: every byte taken for a token,"
        " every answer as long as allowed. The real cost is a fraction of it.",
        soft_wrap=True,
    )
    console.print("Such as:")
    items = {call.item.item_id: call.item for call in left}
    for item in list(items.values())[:_SHOWN_ITEMS]:
        question = " ".join(item.task.question.split())
        short = f"{question[:_LONG]}{'...' * (len(question) > _LONG)}"
        console.print(f"  {item.item_id}: {plain(short)} [{plain(item.task.gold)[:_LONG]}]", soft_wrap=True)


def show_scores(console: Console, worker_id: str, score: WorkerScore) -> None:
    """Show what was measured of one worker, weakest skill first, with Wilson intervals."""
    table = Table(
        "skill",
        "accuracy",
        "95 % interval",
        "right / n",
        "failed",
        box=None,
        pad_edge=False,
        title=worker_id,
        title_justify="left",
    )
    ranked = sorted(score.skills.items(), key=lambda skill: (skill[1].accuracy_ppm, skill[0]))
    for name, skill in (*ranked, ("all skills", score.total)):
        table.add_row(*_row(name, skill))
    console.print(table)
    speed = score.output_tokens_per_second
    console.print(
        f"{usd(score.cost_usd_micros)} spent"
        + (f"; {speed} output tokens per second" if speed else "")
        + (f"; {score.lost} calls were cut short and are not counted" if score.lost else "")
        + "\n",
        soft_wrap=True,
    )


def _row(name: str, skill: SkillScore) -> tuple[str, ...]:
    if not skill.count:
        return name, "not measured", "", "", str(skill.unscorable)
    low, high = skill.interval
    share = f"{100 * skill.right / skill.count:.1f} %"
    return (
        name,
        share,
        f"{100 * low:.1f} to {100 * high:.1f} %",
        f"{skill.right} / {skill.count}",
        str(skill.unscorable or ""),
    )
