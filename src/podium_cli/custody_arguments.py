"""The arguments of the commands about the keeping of records: erase, hold, approve, reads."""

import argparse

ERASE = """examples:
  podium erase RUN --basis subject_request
  podium erase RUN RUN2 --basis contract_ended --case C-17
  podium erase --subject ada@example.com --basis subject_request
                                 every run for whoever the client called so
  podium erase --everything --basis contract_ended

Needs a key with the role privacy. The words go and their keys with them; that
the run took place stays provable. A run under a legal hold is refused, and the
refusal is a record.
"""
HOLD = """examples:
  podium hold RUN --case C-17     nothing of it is erased, nothing expires
  podium hold --all --case C-17   ... of every run of the tenant
  podium hold                     the holds that stand
  podium hold --release HOLD --approval ID
                                  end it: another key has approved

Needs a key with the role privacy; an auditor may list.
"""
APPROVE = """examples:
  podium approve --ask read_content --of RUN --case C-17
                                 an investigator asks to read a run's words
  podium approve --ask release_hold --of HOLD --case C-17
                                 a privacy officer asks to end a hold
  podium approve                 what waits
  podium approve ID              another key approves

Then: podium show RUN --content --approval ID. It ends after a day.
"""
READS = """examples:
  podium reads                   who listed, showed, exported what, newest first
  podium reads --before LEAF     the page after the one that ended with LEAF

Needs a key with the role auditor or privacy.
"""
RETENTION = """examples:
  podium retention               what stands, and what tenants.yaml wants

Needs a key with the role auditor or privacy.
"""
BASES = ["consent_withdrawn", "contract_ended", "legal_obligation", "subject_request", "unlawful_processing"]
ACTIONS = ["read_content", "release_hold", "change_retention"]
_BASIS = f"the legal basis, recorded: {', '.join(BASES)}"
_ASK = f"ask for one: {' or '.join(ACTIONS)}"


def add_to(
    erase: argparse.ArgumentParser,
    hold: argparse.ArgumentParser,
    approve: argparse.ArgumentParser,
    reads: argparse.ArgumentParser,
) -> None:
    """Add what each takes besides where audit is."""
    erase.add_argument("run", nargs="*", metavar="RUN", help="ids of runs")
    erase.add_argument("--subject", default="", metavar="ID", help="every run for this user of the client's")
    erase.add_argument("--everything", action="store_true", help="every run of the tenant that has ended")
    erase.add_argument("--basis", required=True, choices=BASES, metavar="BASIS", help=_BASIS)
    erase.add_argument("--case", default="", metavar="ID", help="the case it belongs to; it is recorded")
    hold.add_argument("run", nargs="*", metavar="RUN", help="ids of runs")
    hold.add_argument("--all", action="store_true", help="every run of the tenant, later ones too")
    hold.add_argument("--case", default="", metavar="ID", help="the case that asks for it")
    hold.add_argument("--release", default="", metavar="HOLD", help="end this hold")
    hold.add_argument("--approval", default="", metavar="ID", help="the approval to end it")
    approve.add_argument("id", nargs="?", default="", help="give this approval")
    approve.add_argument("--ask", default="", metavar="ACTION", choices=ACTIONS, help=_ASK)
    approve.add_argument("--of", default="", metavar="ID", help="run to read, hold to end, policy to follow")
    approve.add_argument("--case", default="", metavar="ID", help="the case that asks for it")
    approve.add_argument("--hours", type=int, default=24, metavar="N", help="how long it holds, default 24")
    reads.add_argument("--limit", type=int, default=20, metavar="N", help="how many, default 20")
    reads.add_argument("--before", default="", metavar="LEAF", help="only reads before this leaf")
