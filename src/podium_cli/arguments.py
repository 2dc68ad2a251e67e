"""The command line: what can be typed, and help that teaches by examples."""

import argparse
from pathlib import Path

from podium_cli import bundle_arguments, custody_arguments, objects_arguments
from podium_cli.run_file import FILTERS
from podium_core.config.tenants import ROLES
from podium_core.domain.plan import MAX_STEPS
from podium_core.domain.plan_prompt import FAST_TIER, MAX_TIER, TIER
from podium_core.grading.catalogue import DEFAULT_SEED
from podium_verifier.__main__ import EXIT_CODES, add_trust_arguments

_START = """examples:
  podium up                        start everything, answer a first question
  podium ask "What is 17 * 23?"    ask; the plan and its steps show live
  podium plan "..."                only plan: prompt, text, probabilities
  podium runs                      what was asked lately
  podium show RUN                  who was allowed, who did what, what it cost
  podium verify RUN                prove a run's record complete and untouched
  podium replay RUN                make its prompts and answer again, compare
  podium usage                     what was used, and the money left
  podium down                      stop everything

`podium COMMAND --help` tells more about each.
"""
_UP = """examples:
  podium up                start the four services and the demo workers, on the
                           usual ports, and answer a first question
  podium up --no-ask       only start
  podium up --use-keys     also add workers for provider keys in the environment
                           and for Ollama or vLLM on this machine: questions may
                           then leave it
  podium up --home ./here --free-ports
                           a second, separate Podium beside the first

What it creates lies in the home directory: tenants.yaml (who may call),
pool.yaml (which workers), api-key, certificates, the services' logs, and the
audit log. Later starts keep it all.
"""
_ASK = """examples:
  podium ask "Add 17 and 25, then write the sum as a Roman numeral"
  podium ask --max-usd 0.01 --max-steps 3 "Convert 26.2 miles to kilometres"
  podium ask --worker demo-arithmetic "2^64"      one worker by name, no plan
  podium ask --answer-only - < question.txt       question from a file, and only
                                                  the answer printed
"""
_PLAN = """examples:
  podium plan "Add 17 and 25, then write the sum as a Roman numeral"
  podium plan --model podium-fast "2^64"    one worker, chosen by probability
  podium plan --no-prompt --seed 7 "..."    the same plan again, no prompt shown
  podium plan --raw "..." > plan.txt        only what the Conductor wrote

No step is performed. An engine that makes calls of its own is recorded as a
run; the others cost nothing.
"""
_PROFILE = """examples:
  podium profile codex               for ~/.codex/config.toml
  podium profile opencode > opencode.json
  eval "$(podium profile openai)"    the variables that OpenAI's SDKs read
  eval "$(podium profile anthropic)" ... and Anthropic's, Claude Code too
  podium profile langchain           lines of Python

No profile holds the key: each names the variable that does.
"""
_PIN = """examples:
  podium pin               podium@<today> stands for the pool and the
                           Conductor's model that are loaded now
  podium pin 2026-11-30    the same under that date

A pinned name is served as long as both are loaded, and refused afterwards.
"""
_RUNS = """examples:
  podium runs                  the newest runs that this key may see
  podium runs --before RUN     the page after the one that ended with RUN
  podium runs --worker gpt --outcome failed --from 2026-11-01
  podium runs --rule tenant.regions.only --out refused.csv
                               all that fit, as .csv, .jsonl or .parquet; the
                               same command later completes the file

A key with the role auditor sees the records of every run of its tenant.
"""
_SHOW = """examples:
  podium show RUN              the run with this id (podium runs lists them)
  podium show last             the newest run
  podium show RUN --content    also the question, the subtasks, every answer

Showing a run is itself recorded in the log.
"""
_VERIFY = """examples:
  podium verify RUN                    export the run, check it against the log
                                       key kept in the home
  podium verify last                   the same for the newest run
  podium verify run_123.podium.jsonl   check a file, offline
  podium verify FILE --key VKEY        ... and that this log signed it, not any
"""
_REPLAY = """examples:
  podium replay RUN              from the record alone: every prompt and the
                                 answer are made again and must be equal
  podium replay RUN --planner    ask today's Conductor with the recorded seed,
                                 and say whether it plans the same
  podium replay RUN --live       ask today's pool the same question: a new run,
                                 which costs money, beside the recorded one
  podium replay run_123.podium.jsonl

The record is verified first. Exit code 0: equal; 1: something differs.
"""
_KEYS = """examples:
  podium keys create alice                      may ask, and read its own runs
  podium keys create revision --role auditor    reads records of its tenant
  podium keys create ci --expires 2027-01-31    works until that day begins, UTC
  podium keys rotate alice --overlap 24h        a new secret; the old one ends
                                                after a day
  podium keys rotate alice --overlap 0          it leaked: the old one ends now
  podium keys revoke alice                      takes the key away
  podium keys list                              which there are

Nothing needs a restart. The tenants file keeps its comments and only hashes.
"""
_GRADE = """examples:
  podium grade last --pass
  podium grade RUN --score 0.5 --comment "right number, wrong unit"

The grade is recorded in the log after the run's seal. Grades move the gate's
table a little: docs/gate.md tells how far.
"""
_USAGE = """examples:
  podium usage                          this month, by worker
  podium usage --by day,model --from 2026-11-01 --to 2026-11-30
  podium usage --by key --all-keys      which key of the tenant used what

A request is counted in the row without a worker, an attempt in its worker's.
"""
_STOP = """examples:
  podium stop RUN                  end this run; what it has used is billed
  podium stop --worker gpt         no call goes to this worker any more
  podium stop --all                no call goes anywhere: the emergency stop
  podium stop --worker gpt --resume
  podium stop --all --resume       ... and on again
  podium stop                      what is stopped now

A stop is a record of the log and survives restarts. It holds from the moment
the command returns: the log gives no further permit.
"""
_HOME = "directory of the local Podium, default $PODIUM_HOME or ~/.podium"
_ROLE = f"default client; one of {', '.join(ROLES)}; repeat"
_AUDIT_URL = "of the audit service there, default $PODIUM_AUDIT_URL or the home's"
_API_KEY = "API key for it, default $PODIUM_API_KEY or the home's own"


_CALIBRATE = """examples:
  podium calibrate --dry-run           what would be asked, and its most cost
  podium calibrate --max-usd 5         measure every worker, write its card
  podium calibrate --worker gpt -n 30  this worker, 30 items per skill
  podium calibrate --skill fractions   this skill; others on the card stay

It asks generated questions with known answers, each a recorded run. Stopped or
killed, the same command goes on where it was and pays for nothing twice. The
speed goes on the card too, prices never do.
"""


def build_parser() -> argparse.ArgumentParser:
    """Return the parser of the whole command line."""
    parser = argparse.ArgumentParser(
        prog="podium",
        description="A team of language models behind one OpenAI-compatible endpoint, with proof.",
        epilog=_START,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--home", type=Path, help=_HOME)
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    up = _add(commands, "up", "start Podium on this machine, in the background", _UP)
    up.add_argument("--no-ask", action="store_true", help="do not ask a first question")
    up.add_argument("--use-keys", action="store_true", help="add workers for found keys and local servers")
    up.add_argument("--free-ports", action="store_true", help="take any free ports instead of the usual ones")
    _add(commands, "down", "stop Podium on this machine", "")
    _add(commands, "status", "show which services run", "")
    _add_ask(commands)
    _add_plan(commands)
    _add_profile(commands)
    pin = _add(commands, "pin", "give what plans now a dated model name", _PIN)
    pin.add_argument("date", nargs="?", help="such as 2026-11-30, default today (UTC)")
    _add_calibrate(commands)
    _add_reading(commands)
    _add_grade(commands)
    _add_usage(commands)
    _add_keys(commands)
    _add_stop(commands)
    objects_arguments.add_to(_add(commands, *objects_arguments.OBJECTS))
    _add_custody(commands)
    return parser


def _add_grade(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    grade = _add(commands, "grade", "say how good a run's answer was", _GRADE)
    grade.add_argument("run", help="the run's id, or `last`")
    how = grade.add_mutually_exclusive_group(required=True)
    how.add_argument("--score", type=float, metavar="S", help="0 is wrong, 1 is right")
    how.add_argument("--pass", dest="passed", action="store_true", help="it was right")
    how.add_argument("--fail", action="store_true", help="it was wrong")
    grade.add_argument("--comment", default="", metavar="TEXT", help="why; sealed like the run's content")
    grade.add_argument("--url", default="", help="the gateway's address, default $PODIUM_URL or the home's")
    grade.add_argument(
        "--audit-url",
        default="",
        metavar="URL",
        help="audit's address, for `last`, default $PODIUM_AUDIT_URL or the home's",
    )
    grade.add_argument("--api-key", default="", metavar="KEY", help=_API_KEY)


def _add_usage(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    usage = _add(commands, "usage", "show what was used, and the money left", _USAGE)
    usage.add_argument("--from", dest="first", metavar="DAY", help="UTC day, default the month's first")
    usage.add_argument("--to", dest="last", metavar="DAY", help="UTC day, default today")
    usage.add_argument(
        "--by", default="worker", metavar="WHAT", help="of day, key, worker, model; default worker"
    )
    usage.add_argument("--all-keys", action="store_true", help="of the whole tenant; needs the role auditor")
    usage.add_argument("--url", default="", help="the gateway's address, default $PODIUM_URL or the home's")
    usage.add_argument("--api-key", default="", metavar="KEY", help=_API_KEY)


def _add_stop(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    stop = _add(commands, "stop", "stop a run, a worker or everything", _STOP)
    what = stop.add_mutually_exclusive_group()
    what.add_argument("run", nargs="?", type=_text, help="the id of a run")
    what.add_argument("--worker", type=_text, metavar="ID", help="give this worker no further call")
    what.add_argument("--all", action="store_true", help="give nobody a further call")
    stop.add_argument("--tenant", type=_text, default="", metavar="ID", help="only for this tenant")
    stop.add_argument("--resume", action="store_true", help="let the worker, or all, work again")


def _add_custody(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    erase = _add(commands, "erase", "erase the content of runs, for good", custody_arguments.ERASE)
    hold = _add(commands, "hold", "keep runs from erasure and expiry", custody_arguments.HOLD)
    approve = _add(commands, "approve", "ask for, list and give approvals", custody_arguments.APPROVE)
    reads = _add(commands, "reads", "list who read what", custody_arguments.READS)
    custody_arguments.add_to(erase, hold, approve, reads)
    bundle = _add(commands, "bundle", "bundle runs in one file that proves itself", bundle_arguments.BUNDLE)
    bundle_arguments.add_to(bundle)
    retention = _add(commands, "retention", "show how long records are kept", custody_arguments.RETENTION)
    for command in (erase, hold, approve, reads, retention, bundle):
        command.add_argument("--audit-url", default="", metavar="URL", help=_AUDIT_URL)
        command.add_argument("--api-key", default="", metavar="KEY", help=_API_KEY)


def _add_keys(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    keys = _add(commands, "keys", "make, rotate and revoke API keys", _KEYS)
    does = keys.add_subparsers(dest="keys_command", metavar="COMMAND", required=True)
    create = _add(does, "create", "make a new key, shown once", "")
    rotate = _add(does, "rotate", "give a key a new secret, shown once", "")
    revoke = _add(does, "revoke", "take a key away", "")
    listing = _add(does, "list", "show the keys there are, never their secrets", "")
    create.add_argument("id", help="a name for the key; it shows in the log, the key itself never does")
    create.add_argument("--tenant", default="", metavar="ID", help="whose key it is, if there are several")
    create.add_argument("--role", action="append", choices=ROLES, metavar="ROLE", help=_ROLE)
    create.add_argument("--expires", metavar="DAY", help="day or UTC time from which it works no more")
    rotate.add_argument(
        "--overlap", default="24h", metavar="SPAN", help="how long the old works on, default 24h"
    )
    rotate.add_argument("--end-earlier", action="store_true", help="end secrets of earlier rotations now")
    for command in (rotate, revoke):
        command.add_argument("id", help="the key's name")
    for command in (create, rotate, revoke, listing):
        command.add_argument("--tenants", type=Path, metavar="FILE", help="tenants.yaml, default the home's")


def _add_ask(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    ask = _add(commands, "ask", "ask a question", _ASK)
    ask.add_argument(
        "question", nargs="+", type=_text, help="the question, or - to read it from standard input"
    )
    ask.add_argument("--model", default="podium", help="model name, default podium")
    ask.add_argument("--worker", help="ask this one worker, without a plan")
    ask.add_argument(
        "--only", action="append", metavar="WORKER", help="let only this worker take part; repeat"
    )
    ask.add_argument("--exclude", action="append", metavar="WORKER", help="leave this worker out; repeat")
    ask.add_argument("--max-usd", metavar="USD", help="most the run may cost, such as 0.05")
    ask.add_argument("--max-steps", type=int, metavar="N", help="most steps of the plan")
    ask.add_argument("--max-calls", type=int, metavar="N", help="most provider calls")
    ask.add_argument("--max-seconds", type=float, metavar="S", help="most seconds the run may take")
    ask.add_argument("--answer-only", action="store_true", help="print the answer and nothing else")
    ask.add_argument(
        "--url", default="", help="ask the gateway at this address, default $PODIUM_URL or the home's"
    )
    ask.add_argument("--api-key", default="", metavar="KEY", help=_API_KEY)


def _add_plan(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    plan = _add(commands, "plan", "show how a question would be planned, and why", _PLAN)
    plan.add_argument(
        "question", nargs="+", type=_text, help="the question, or - to read it from standard input"
    )
    plan.add_argument("--model", default=TIER, choices=[TIER, FAST_TIER, MAX_TIER], help="default podium")
    plan.add_argument(
        "--only", action="append", metavar="WORKER", help="let only this worker take part; repeat"
    )
    plan.add_argument("--exclude", action="append", metavar="WORKER", help="leave this worker out; repeat")
    plan.add_argument("--max-steps", type=int, choices=range(1, MAX_STEPS + 1), help="most steps")
    plan.add_argument("--seed", type=int, metavar="N", help="seed of shuffling and sampling, default random")
    plan.add_argument("--timeout", type=float, default=60.0, metavar="S", help="seconds, default 60")
    plan.add_argument("--no-prompt", action="store_true", help="do not show the prompt")
    plan.add_argument("--raw", action="store_true", help="print only what the Conductor wrote")


def _add_profile(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    profile = _add(commands, "profile", "show the configuration of a client", _PROFILE)
    clients = ["anthropic", "codex", "langchain", "openai", "opencode"]
    profile.add_argument("client", choices=clients, help="which client")
    profile.add_argument("--url", default="", help="of the gateway there, default $PODIUM_URL or the home's")
    profile.add_argument("--api-key", default="", metavar="KEY", help=_API_KEY)


def _add_calibrate(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    calibrate = _add(commands, "calibrate", "measure workers and write their cards", _CALIBRATE)
    calibrate.add_argument("--worker", action="append", metavar="WORKER", help="only this worker; repeat")
    calibrate.add_argument("--skill", action="append", metavar="SKILL", help="only this skill; repeat")
    calibrate.add_argument("-n", dest="count", type=int, default=20, help="items per skill, default 20")
    calibrate.add_argument("--max-usd", default="1.00", metavar="USD", help="most it may cost, default 1.00")
    calibrate.add_argument("--concurrency", type=_positive, default=8, metavar="N", help="calls at once")
    calibrate.add_argument(
        "--max-output-tokens", type=_positive, default=1024, metavar="N", help="longest answer, default 1024"
    )
    calibrate.add_argument("--seed", type=int, default=DEFAULT_SEED, help="which items; keep it to compare")
    calibrate.add_argument("--unpriced", action="store_true", help="also workers whose cost is not known")
    calibrate.add_argument("--dry-run", action="store_true", help="show items and cost, ask nothing")
    calibrate.add_argument("--no-write", action="store_true", help="measure and show, write no card")
    calibrate.add_argument("--again", action="store_true", help="repeat calls that were cut short")
    calibrate.add_argument("--log", type=Path, metavar="FILE", help="the log, default in the home")
    calibrate.add_argument("--pool", type=Path, metavar="FILE", help="the pool file, default the home's")
    calibrate.add_argument("--tenants", type=Path, metavar="FILE", help="tenants.yaml, default the home's")
    calibrate.add_argument("--tenant", default="", metavar="ID", help="who pays, if there are several")
    calibrate.add_argument("--router", default="", metavar="HOST:PORT", help="router of another installation")
    calibrate.add_argument("--audit", default="", metavar="HOST:PORT", help="its audit service (gRPC)")
    calibrate.add_argument("--tls", type=Path, metavar="DIR", help="ca.pem and cli/{cert,key}.pem for them")


def _text(argument: str) -> str:
    # Bytes that are no UTF-8 come as halves of surrogate pairs, which no message can carry.
    if not argument.isascii() and any("\ud800" <= character <= "\udfff" for character in argument):
        raise argparse.ArgumentTypeError("must be UTF-8 text")
    return argument


def _positive(text: str) -> int:
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError("must be at least 1")
    return value


def _add_reading(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    runs = _add(commands, "runs", "list the newest runs", _RUNS)
    runs.add_argument("--limit", type=int, default=20, metavar="N", help="how many, default 20")
    runs.add_argument("--before", metavar="RUN", help="only runs older than this one")
    for name, meaning in FILTERS.items():
        option = f"--{name.replace('_', '-')}"
        runs.add_argument(option, dest=f"only_{name}", metavar="VALUE", type=_text, help=meaning)
    runs.add_argument("--out", type=Path, metavar="FILE", help="write all that fit: .jsonl, .csv or .parquet")
    show = _add(commands, "show", "show one run from the log", _SHOW)
    show.add_argument("run", help="the run's id, or `last`")
    show.add_argument("--content", action="store_true", help="show the recorded texts too")
    show.add_argument("--approval", default="", metavar="ID", help="that lets an investigator see them")
    verify = _add(commands, "verify", "prove the record of a run", _VERIFY + "\n" + EXIT_CODES)
    verify.add_argument("what", metavar="FILE|RUN", help="an exported file, or the id of a run")
    add_trust_arguments(verify)
    verify.add_argument("--out", type=Path, metavar="FILE", help="where to keep the export of a run")
    replay = _add(commands, "replay", "perform a recorded run again and compare", _REPLAY)
    replay.add_argument("run", metavar="FILE|RUN", help="an exported file, the id of a run, or `last`")
    how = replay.add_mutually_exclusive_group()
    how.add_argument("--planner", action="store_true", help="plan again with the Conductor of this home")
    how.add_argument("--live", action="store_true", help="ask again and compare the answers")
    replay.add_argument("--url", default="", help="the gateway's address, default $PODIUM_URL or the home's")
    for command in (runs, show, verify, replay):
        command.add_argument(
            "--audit-url",
            default="",
            metavar="URL",
            help=_AUDIT_URL,
        )
        command.add_argument("--api-key", default="", metavar="KEY", help=_API_KEY)


def _add(
    commands: "argparse._SubParsersAction[argparse.ArgumentParser]", name: str, does: str, examples: str
) -> argparse.ArgumentParser:
    parser = commands.add_parser(
        name,
        help=does,
        description=f"{does[0].upper()}{does[1:]}.",
        epilog=examples,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    # Without a default, so that `podium --home DIR COMMAND` is not overwritten.
    parser.add_argument("--home", type=Path, default=argparse.SUPPRESS, help=_HOME)
    return parser
