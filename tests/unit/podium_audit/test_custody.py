"""Holds, approvals and erasures as the log decides them: what is refused, and what stays true after a crash."""

from dataclasses import replace

import pytest

from podium_audit.custody.policies import target_of
from podium_audit.ports import StoreError
from podium_audit.records.commands import (
    BeginErasure,
    FinishErasure,
    GiveApproval,
    PlaceHold,
    ReleaseHold,
    RequestApproval,
    SetRetention,
)
from podium_core.config.retention import Retention
from podium_core.domain.errors import Code, PodiumError
from tests.fakes.audit_log import RUN, LogScene, begin, end, event, open_run, seal

_DAY_US = 86_400_000_000


def sealed(scene: LogScene, run_id: str = RUN, tenant_id: str = "acme") -> None:
    attempt_id = f"att.{run_id}"
    scene.do(
        open_run(run_id, tenant_id=tenant_id),
        begin(attempt_id, run_id),
        end(attempt_id, run_id),
        seal(run_id),
    )


def erasure(
    run_id: str = RUN, number: int = 0, tenant_id: str = "acme", basis: str = "subject_request"
) -> BeginErasure:
    return BeginErasure(event(f"erase.{run_id}.{number}"), run_id, tenant_id, "officer", basis, "c-1")


def finished(run_id: str = RUN) -> FinishErasure:
    return FinishErasure(event(f"erased.{run_id}"), run_id, 7)


def hold(hold_id: str = "hold_1", *run_ids: str) -> PlaceHold:
    return PlaceHold(event(f"place.{hold_id}"), "acme", hold_id, "case-9", "officer", run_ids)


def request(scene: LogScene, action: str = "release_hold", target: str = "hold_1") -> RequestApproval:
    now_us = scene.clock.now_ns() // 1_000
    return RequestApproval(
        event("ask.apr_1"), "acme", "apr_1", action, target, "case-9", "officer", now_us + _DAY_US
    )


def give(principal_id: str) -> GiveApproval:
    return GiveApproval(event(f"give.{principal_id}"), "acme", "apr_1", principal_id)


def release(principal_id: str = "officer") -> ReleaseHold:
    return ReleaseHold(event(f"release.{principal_id}"), "acme", "hold_1", principal_id, "apr_1")


def refused(scene: LogScene, *commands: object) -> PodiumError:
    with pytest.raises(PodiumError) as caught:
        scene.do(*commands)  # type: ignore[arg-type]
    return caught.value


def test_an_erasure_is_decided_then_recorded_once_the_key_is_gone() -> None:
    scene = LogScene()
    sealed(scene)
    begun = scene.do(erasure()).leaf_indices[0]
    with pytest.raises(StoreError, match="still there"):
        scene.do(finished())
    assert scene.store.contents
    scene.keys.erase([1])
    applied = scene.do(finished())
    assert scene.last()["type"] == "erased"
    assert scene.last()["facts"] == {
        "principal_id": "officer",
        "basis": "subject_request",
        "case_id": "c-1",
        "begun_index": begun,
        "part_count": 3,
        "key_is_gone": True,
        "key_backup_days": 7,
    }
    assert applied.erased_index == applied.leaf_indices[0]
    assert not scene.store.contents
    assert scene.store.pending_erasures(9) == []


def test_what_a_crash_parts_is_found_again_and_a_repeat_adds_nothing() -> None:
    scene = LogScene()
    sealed(scene)
    begun = scene.do(erasure()).leaf_indices
    scene.restart()
    assert scene.do(erasure(number=1)).leaf_indices == begun
    assert [row.run_id for row in scene.store.pending_erasures(9)] == [RUN]
    scene.keys.erase([1])
    scene.restart()
    erased = scene.do(finished()).leaf_indices
    assert scene.do(erasure(number=2)).leaf_indices == erased
    assert [record["type"] for record in scene.records()].count("erased") == 1


def test_another_tenants_run_an_open_one_and_a_wrong_basis_are_refused() -> None:
    scene = LogScene()
    scene.do(open_run())
    assert refused(scene, erasure()).reason == "RUN_OPEN"
    assert refused(scene, erasure(number=1, tenant_id="other")).code is Code.NOT_FOUND
    assert refused(scene, erasure(number=2, basis="because")).param == "basis"
    assert refused(scene, finished()).reason == "ERASURE_UNKNOWN"


def test_no_digest_of_what_was_said_outlives_its_key() -> None:
    scene = LogScene()
    opening = open_run()
    scene.do(opening, begin(), seal(settle_open=True))
    stored = scene.store.events_[opening.event.event_id].digest
    plain = {row.digest for row in scene.store.events_.values()} & {opening.event.digest}
    assert not plain
    assert scene.do(opening).leaf_indices == (0, 1)
    assert (
        refused(scene, replace(opening, event=event("open.run_1", request="other"))).reason == "EVENT_REUSED"
    )
    scene.do(erasure())
    scene.keys.erase([1])
    late = end()
    scene.do(late)
    assert scene.store.events_[late.event.event_id].digest == bytes(32)
    assert stored not in (opening.event.digest, bytes(32))
    assert scene.do(opening).leaf_indices == (0, 1), "a repeated call is answered as before"
    scene.restart()
    assert scene.do(late).is_new is False


def test_a_log_with_plain_digests_knows_its_calls_again() -> None:
    scene = LogScene()
    opening = open_run()
    scene.do(opening)
    row = scene.store.events_[opening.event.event_id]
    scene.store.events_[row.event_id] = row._replace(digest=opening.event.digest)
    scene.restart()
    assert scene.do(opening).is_new is False


def test_what_ends_late_is_settled_but_adds_no_content_to_an_erased_run() -> None:
    scene = LogScene()
    scene.do(open_run(), begin(), seal(settle_open=True))
    scene.do(erasure())
    scene.do(end())
    assert scene.last()["type"] == "attempt_late"
    assert scene.last()["contents"] == []
    assert scene.settled() == 40


@pytest.mark.parametrize("named", [(), (RUN,)])
def test_a_hold_refuses_erasure_on_record_until_two_keys_end_it(named: tuple[str, ...]) -> None:
    scene = LogScene()
    sealed(scene)
    scene.do(hold("hold_1", *named))
    assert scene.do(erasure()).refusal == "LEGAL_HOLD"
    assert scene.last()["type"] == "erasure_refused"
    assert scene.last()["facts"]["hold_ids"] == ["hold_1"]
    assert refused(scene, release()).reason == "APPROVAL_REQUIRED"
    scene.do(request(scene))
    assert refused(scene, release()).reason == "APPROVAL_OUTSTANDING"
    assert refused(scene, give("officer")).reason == "SAME_KEY"
    scene.do(give("second"))
    assert refused(scene, release("second")).reason == "APPROVAL_REQUIRED"
    scene.do(release())
    assert refused(scene, replace(release(), event=event("again"))).code is Code.NOT_FOUND
    assert scene.do(erasure(number=1)).refusal == ""


def test_a_hold_on_one_run_leaves_others_free_and_holds_in_its_own_batch() -> None:
    scene = LogScene()
    sealed(scene)
    sealed(scene, "run_2")
    scene.do(hold("hold_1", RUN), erasure(RUN))
    assert scene.last()["type"] == "erasure_refused"
    assert scene.do(erasure("run_2")).refusal == ""


def test_a_hold_names_runs_of_its_own_tenant() -> None:
    scene = LogScene()
    sealed(scene, tenant_id="other")
    assert refused(scene, hold("hold_1", RUN)).code is Code.NOT_FOUND
    assert refused(scene, hold("hold_1", "run_9")).code is Code.NOT_FOUND


def test_an_approval_expires_whether_given_or_not() -> None:
    scene = LogScene()
    sealed(scene)
    scene.do(hold(), request(scene))
    scene.clock.advance(90_000)
    assert refused(scene, give("second")).reason == "APPROVAL_EXPIRED"
    asked = replace(request(scene), event=event("ask.2"), approval_id="apr_2")
    scene.do(asked)
    assert [row.item_id for row in scene.store.controls("approval", "acme")] == ["apr_2"]
    scene.do(replace(give("second"), event=event("give.2"), approval_id="apr_2"))
    scene.clock.advance(90_000)
    late = replace(release(), approval_id="apr_2")
    assert refused(scene, late).reason == "APPROVAL_EXPIRED"


def test_an_approval_is_for_a_known_action_and_not_for_ever() -> None:
    scene = LogScene()
    assert refused(scene, request(scene, "read_everything")).param == "action"
    too_long = replace(request(scene), expires_us=scene.clock.now_ns() // 1_000 + 8 * _DAY_US)
    assert refused(scene, too_long).param == "valid_s"


def policy(number: int, evidence: int | None = None, content: int | None = None) -> SetRetention:
    return SetRetention(event(f"policy.{number}"), "acme", Retention(evidence, content))


def test_a_longer_policy_stands_at_once_and_a_shorter_one_once_two_keys_want_it() -> None:
    scene = LogScene()
    sealed(scene)
    assert scene.do(policy(0)).leaf_indices == ()
    refusal = refused(scene, policy(1, 400, 30))
    assert refusal.reason == "APPROVAL_REQUIRED"
    target = target_of("acme", Retention(400, 30))
    assert target in refusal.message
    scene.do(request(scene, "change_retention", target))
    assert refused(scene, policy(2, 400, 30)).reason == "APPROVAL_REQUIRED"
    scene.do(give("second"), policy(3, 400, 30))
    assert scene.last()["type"] == "retention_set"
    assert scene.last()["facts"] == {
        "evidence_days": 400,
        "content_days": 30,
        "conversation_days": None,
        "approval_id": "apr_1",
    }
    assert scene.do(policy(4, 400, 30)).leaf_indices == ()
    assert scene.do(policy(5, 500, 30)).leaf_indices != ()
    assert refused(scene, policy(6, 500, 29)).reason == "APPROVAL_REQUIRED"
    assert refused(scene, policy(7, 400, 30)).reason == "APPROVAL_REQUIRED"


def test_a_tenant_without_records_begins_under_the_policy_of_its_file() -> None:
    scene = LogScene()
    scene.do(policy(0, 184, 1))
    assert scene.last()["type"] == "retention_set"
