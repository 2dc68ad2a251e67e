"""The rows by which reads, and the runs for a person, are found: what their records say, no more."""

from typing import Any

from podium_audit.ports import Batch
from podium_audit.rows.custody import ReadRow, SubjectRow


def add(batch: Batch, index: int, run_no: int | None, record: dict[str, Any]) -> None:
    """Put the row of a record into its batch, if it is of a kind that has one."""
    facts = record["facts"]
    if record["type"] == "read":
        batch.reads.append(
            ReadRow(
                index,
                record["tenant_id"],
                record["time_us"],
                facts["principal_id"],
                facts["action"],
                record["run_id"],
                facts["with_content"],
                facts.get("case_id", ""),
            )
        )
    elif record["type"] == "opened" and run_no is not None and "subject" in facts:
        batch.subjects.append(SubjectRow(record["tenant_id"], facts["subject"], run_no))
