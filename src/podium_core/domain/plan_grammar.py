"""The grammar of a plan text, built per request: whatever it generates, `parse_plan` accepts.

GBNF, in the dialect that llama.cpp, xgrammar and vLLM read. It holds the pool (ordinals), the step cap,
equal lengths and access to earlier steps only; everything else about a plan is meaning, not form.
"""

from itertools import combinations

from podium_core.domain.plan import MAX_STEPS

# `<` only where it cannot open a tag, no back-tick: the parser removes thinking tags and back-ticks.
_CHAR = r"""char ::= [^"\\<`\x00-\x1f\x7f] | "\\" ["\\/nt] | "<" [ =0-9]"""
# No bracket, so that nothing in the reasoning can look like one of the lists.
_REASONING_CHAR = r"""thought ::= [^\[\]<`\x00-\x09\x0b-\x1f\x7f] | "<" [ =0-9]"""


def plan_grammar(
    worker_count: int,
    max_steps: int,
    *,
    round_index: int = 0,
    max_subtask_chars: int | None = 400,
    free_reasoning_chars: int = 0,
) -> str:
    """Return the grammar for plans over `worker_count` listed workers and 1 to `max_steps` steps.

    `max_subtask_chars` of 0 allows only empty subtasks (the question passes through), as `podium-fast` needs;
    None sets no limit, which xgrammar serves hundreds of times faster than a limit of hundreds.
    `free_reasoning_chars` of 0 starts with the lists at once. After the first round three empty lists are
    allowed too. Raises ValueError when no plan could exist.
    """
    if worker_count < 1 or not 1 <= max_steps <= MAX_STEPS:
        raise ValueError(f"a plan needs a worker and 1 to {MAX_STEPS} steps")
    counts = range(1 if round_index == 0 else 0, max_steps + 1)
    plans = " | ".join(f"plan-{count}" for count in counts)
    rules = [f"root ::= reasoning lists\nlists ::= {plans}" if free_reasoning_chars else f"root ::= {plans}"]
    if free_reasoning_chars:
        rules += [f'reasoning ::= thought{{0,{free_reasoning_chars}}} "\\n"', _REASONING_CHAR]
    rules += [_plan(count) for count in counts]
    rules.append("worker ::= " + " | ".join(f'"{ordinal}"' for ordinal in range(worker_count)))
    if max_subtask_chars is None:
        rules += ['subtask ::= "\\"" char* "\\""', _CHAR]
    elif max_subtask_chars:
        rules += [f'subtask ::= "\\"" char{{0,{max_subtask_chars}}} "\\""', _CHAR]
    else:
        rules.append('subtask ::= "\\"\\""')
    rules += [_access(step, sees_previous=round_index > 0) for step in range(max_steps)]
    return "\n".join(rules) + "\n"


def _plan(count: int) -> str:
    def listed(names: list[str]) -> str:
        return ' ", " '.join(names)

    if count == 0:
        return r'plan-0 ::= "model_id = []\nsubtasks = []\naccess_list = []"'
    workers, subtasks = listed(["worker"] * count), listed(["subtask"] * count)
    access = listed([f"access-{step}" for step in range(count)])
    return (
        rf'plan-{count} ::= "model_id = [" {workers} "]\nsubtasks = [" {subtasks} '
        rf'"]\naccess_list = [" {access} "]"'
    )


def _access(step: int, *, sees_previous: bool) -> str:
    choices = ['"[]"']
    if step > 0 or sees_previous:
        choices.append(r'"[\"all\"]"')
    for size in range(1, step + 1):
        for seen in combinations(range(step), size):
            choices.append(f'"[{", ".join(map(str, seen))}]"')  # noqa: PERF401 - reads better as two loops
    return f"access-{step} ::= " + " | ".join(choices)
