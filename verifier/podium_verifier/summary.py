"""What a verified export says, in words a person can check against their own knowledge of the run."""

import textwrap
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Any

from podium_verifier.bundle import VerifiedBundle
from podium_verifier.faults import printable
from podium_verifier.leaf_format import Leaf
from podium_verifier.verify import Verified

_MICROS = 1_000_000
_WIDTH = 80


def render(verified: Verified) -> str:
    """Return the summary of a verified export, lines ended by newlines."""
    return "".join(f"{printable(line)}\n" for line in _lines(verified))


def render_bundle(bundle: VerifiedBundle) -> str:
    """Return the summary of a verified bundle, lines ended by newlines."""
    return "".join(f"{printable(line)}\n" for line in _bundle_lines(bundle))


def usd(micros: int) -> str:
    """Return a cost in dollars, exact to the millionth."""
    return f"${micros // _MICROS}.{micros % _MICROS:06d}"


def _lines(verified: Verified) -> Iterator[str]:
    (opened,) = verified.of_type("opened")
    (seal,) = verified.of_type("sealed")
    yield f"VERIFIED  run {verified.header.run_id}"
    yield f"  tenant     {verified.header.tenant_id}"
    yield f"  asked by   {opened.facts['principal_id']} at {_time(opened.time_us)}"
    yield f"  asked for  model {opened.facts['requested_model']} ({opened.facts['kind']})"
    yield from _verdicts(opened.facts["verdicts"])
    for plan in verified.of_type("plan"):
        yield from _plan(plan.facts)
    yield from _attempts(verified)
    reason = f" ({seal.facts['error_reason']})" if seal.facts["error_reason"] else ""
    yield f"  outcome    {seal.facts['outcome']}{reason} at {_time(seal.time_us)}"
    attempts = _counted(seal.facts["attempt_count"], "attempt")
    yield f"  cost       {usd(seal.facts['cost_usd_micros'])} for {attempts}"
    yield from _erasure(verified)
    yield "Proven:"
    for sentence in _proven(verified):
        yield from _item(sentence)
    yield "Not proven:"
    for sentence in _not_proven(verified):
        yield from _item(sentence)
    if verified.erased_index is not None:
        yield f"Content erased under leaf {verified.erased_index}: nobody can read it or prove what it was."
    yield f"Log key: {verified.key.text}"


def _erasure(verified: Verified) -> Iterator[str]:
    for leaf in verified.of_type("erasure_refused"):
        holds = ", ".join(leaf.facts["hold_ids"])
        yield f"  held       erasure refused by leaf {leaf.index}, under {holds}"
    erased = verified.of_type("erased")
    for leaf in erased:
        facts = leaf.facts
        by = facts["principal_id"]
        yield f"  erased     under leaf {leaf.index}, {facts['basis']}, by {by} at {_time(leaf.time_us)}"
    for leaf in verified.of_type("erasure_begun") if not erased else ():
        yield f"  erased     content is being erased since leaf {leaf.index}"


def _bundle_lines(bundle: VerifiedBundle) -> Iterator[str]:
    manifest = bundle.manifest
    yield f"VERIFIED  bundle of {_counted(len(bundle.runs), 'run')} of the tenant {manifest['tenant_id']}"
    if manifest["case_id"]:
        yield f"  case       {manifest['case_id']}"
    for run in bundle.runs:
        (seal,) = run.of_type("sealed")
        erased = f", content erased under leaf {run.erased_index}" if run.erased_index is not None else ""
        cost = usd(seal.facts["cost_usd_micros"])
        yield f"  run        {run.header.run_id}: {seal.facts['outcome']}, {cost}{erased}"
    for run_id in manifest["open_runs"]:
        yield f"  run        {run_id}: was still open"
    yield "Proven:"
    yield from _item(
        f"each run's own export, as `podium verify` proves it; leaf {bundle.index} of the log"
        " holds the digest of the manifest, which holds those of all files"
    )
    if bundle.record_count:
        first, last = manifest["first_seq"], manifest["last_seq"]
        yield from _item(
            f"the tenant's records {first} to {last} are here, all {bundle.record_count}, and nobody else's"
        )
    if not bundle.key_is_pinned:
        yield "Not proven:"
        yield from _item("who signed: the log key came from the bundle itself; pin it with --key")
    yield f"Log key: {manifest['vkey']}"


def _verdicts(verdicts: list[Mapping[str, Any]]) -> Iterator[str]:
    allowed = [verdict["worker_id"] for verdict in verdicts if verdict["allowed"]]
    count = f"{len(allowed)} of {_counted(len(verdicts), 'worker')}"
    yield from _wrapped(f"{count} allowed: {', '.join(allowed) or 'none'}", "  verdicts   ")
    for verdict in verdicts:
        if not verdict["allowed"]:
            yield f"             {verdict['worker_id']} refused by rule {verdict['rule_id']}"


def _plan(facts: Mapping[str, Any]) -> Iterator[str]:
    why = f", because {facts['fallback_reason']}" if facts["fallback_reason"] else ""
    steps = _counted(len(facts["steps"]), "step")
    yield f"  plan       source {facts['source']}{why}, round {facts['round']}, {steps}"
    for index, step in enumerate(facts["steps"]):
        sees = [f"step {seen}" for seen in step["access"]]
        if step["sees_previous_round"]:
            sees.append("the previous round's answer")
        spare = f", else {step['fallback_worker_id']}" if step["fallback_worker_id"] else ""
        yield f"    step {index}   {step['worker_id']}{spare}, sees {', '.join(sees) or 'only the question'}"


def _attempts(verified: Verified) -> Iterator[str]:
    ends = {leaf.facts["attempt_id"]: leaf for leaf in verified.of_type("attempt_ended", "attempt_late")}
    for begun in verified.of_type("attempt_begun"):
        facts = begun.facts
        yield from _wrapped(
            f"{facts['kind']} {facts['step_index']} by {facts['worker_id']}"
            f" ({facts['provider']} {facts['provider_model']} at {facts['endpoint_host']}),"
            f" {_ending(ends.get(facts['attempt_id']), facts)}, permitted by leaf {begun.index}",
            "  attempt    ",
        )


def _ending(end: Leaf | None, begun: Mapping[str, Any]) -> str:
    if end is None:
        return f"end unknown, charged at most {usd(begun['max_cost_usd_micros'])}"
    usage = end.facts["usage"]
    late = "late, " if end.type == "attempt_late" else ""
    return (
        f"{late}{end.facts['outcome']}, {usage['input_tokens']} tokens in and {usage['output_tokens']} out"
        f" ({usage['source']}), {usd(end.facts['cost_usd_micros'])}"
    )


def _proven(verified: Verified) -> Iterator[str]:
    checkpoint = verified.checkpoint
    records = _counted(len(verified.leaves), "record")
    reads = len(verified.of_type("read"))
    of_them = f" ({reads} of them about reading the run)" if reads else ""
    yield (
        f"each of the {records}{of_them} stands unchanged in the log {checkpoint.origin}"
        f" of {_counted(checkpoint.size, 'leaf', 'leaves')} that its key signed"
    )
    yield "no record of the run is missing between its opening and its seal"
    yield (
        "every attempt was recorded after the verdicts and the plan that permit it,"
        " and was to see no more of the other steps than its plan allows"
    )
    yield from _of_the_log(verified)
    if verified.header.with_content:
        contents = _counted(sum(len(leaf.contents) for leaf in verified.leaves), "content part")
        bodies = _counted(len(verified.of_type("attempt_begun")), "sent body", "sent bodies")
        yield f"{contents} and {bodies} are the very bytes committed to"


def _of_the_log(verified: Verified) -> Iterator[str]:
    for rotation in verified.history.rotations:
        yield (
            f"the log's key {rotation.old.key_id.hex()} was replaced by {rotation.new.key_id.hex()}"
            f" in leaf {rotation.index}, signed by the old one"
        )
    for gap in verified.history.gaps:
        yield (
            f"the log lost the leaves from {gap.kept_size} to {gap.lost_size - 1}"
            f" and says so in leaf {gap.index}"
        )
    for kept in verified.kept:
        leaves = _counted(kept.size, "leaf", "leaves")
        yield f"the log continues the one of {leaves} whose checkpoint you kept"
    if verified.cosigned is not None:
        witnesses = [
            f"{by.witness} at {datetime.fromtimestamp(by.time_s, UTC):%Y-%m-%d %H:%M:%S} UTC"
            for by in verified.cosigned.by
        ]
        yield (
            f"the log of {verified.cosigned.checkpoint.size} leaves, the whole run among them, continued"
            f" all that was seen of it before by {', '.join(witnesses)}"
        )


def _not_proven(verified: Verified) -> Iterator[str]:
    if not verified.key_is_pinned:
        yield "who signed: the log key came from the export itself; compare it, or pin it with --key"
    if not verified.header.with_content and verified.erased_index is None:
        yield "the content: this export holds none, so no commitment was opened"
    if verified.cosigned is None:
        yield "that the log never showed others another history: compare its checkpoints with theirs"
    yield "what the providers did with what they were sent"


def _item(sentence: str) -> list[str]:
    return _wrapped(sentence, "  - ")


def _wrapped(text: str, label: str) -> list[str]:
    """Return the text in lines that fit a terminal, the label before the first one."""
    return textwrap.wrap(
        printable(text),
        _WIDTH,
        initial_indent=label,
        subsequent_indent=" " * len(label),
        break_long_words=False,
        break_on_hyphens=False,
    )


def _counted(count: int, noun: str, nouns: str = "") -> str:
    return f"{count} {noun if count == 1 else nouns or noun + 's'}"


def _time(time_us: int) -> str:
    seconds, micros = divmod(time_us, _MICROS)
    return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%d %H:%M:%S}.{micros // 1000:03d} UTC"
