"""Who may call which RPC: one table for all services, complete by their contracts."""

import pytest
from google.protobuf.descriptor import ServiceDescriptor

import podium_audit.servicers.audit
import podium_audit.servicers.conversations
import podium_audit.servicers.grades
import podium_audit.servicers.limits
import podium_audit.servicers.stops
import podium_audit.servicers.usage
import podium_conductor.servicer
import podium_router.servicer
from podium.audit.v1 import (
    audit_service_pb2,
    conversation_service_pb2,
    grade_service_pb2,
    limit_service_pb2,
    stop_service_pb2,
    usage_service_pb2,
)
from podium.conductor.v1 import conductor_service_pb2
from podium.router.v1 import router_service_pb2
from podium_core.runtime.identity import SERVICES

CALLERS = {
    "podium.audit.v1.AuditService": (
        podium_audit.servicers.audit.PERMISSIONS,
        audit_service_pb2.DESCRIPTOR.services_by_name["AuditService"],
        {
            "OpenRun": {"gateway", "cli"},
            "Append": {"gateway", "cli", "conductor"},
            "PutContent": {"gateway", "router"},
            "BeginAttempt": {"router"},
            "EndAttempt": {"router"},
            "Perform": {"gateway", "router"},
            "Seal": {"gateway", "cli"},
            "RenewLease": {"gateway", "cli"},
        },
    ),
    "podium.audit.v1.ConversationService": (
        podium_audit.servicers.conversations.PERMISSIONS,
        conversation_service_pb2.DESCRIPTOR.services_by_name["ConversationService"],
        {"PutItem": {"gateway"}, "GetItem": {"gateway"}, "ListItems": {"gateway"}, "DeleteItem": {"gateway"}},
    ),
    "podium.audit.v1.GradeService": (
        podium_audit.servicers.grades.PERMISSIONS,
        grade_service_pb2.DESCRIPTOR.services_by_name["GradeService"],
        {"Grade": {"gateway"}, "ListGradeTallies": {"gateway"}},
    ),
    "podium.audit.v1.StopService": (
        podium_audit.servicers.stops.PERMISSIONS,
        stop_service_pb2.DESCRIPTOR.services_by_name["StopService"],
        {
            "RequestStop": {"cli", "gateway"},
            "ClearStop": {"cli"},
            "ListStops": {"cli", "gateway"},
        },
    ),
    "podium.audit.v1.LimitService": (
        podium_audit.servicers.limits.PERMISSIONS,
        limit_service_pb2.DESCRIPTOR.services_by_name["LimitService"],
        {"LeaseSlices": {"gateway"}},
    ),
    "podium.audit.v1.UsageService": (
        podium_audit.servicers.usage.PERMISSIONS,
        usage_service_pb2.DESCRIPTOR.services_by_name["UsageService"],
        {"ReadUsage": {"gateway"}},
    ),
    "podium.conductor.v1.ConductorService": (
        podium_conductor.servicer.PERMISSIONS,
        conductor_service_pb2.DESCRIPTOR.services_by_name["ConductorService"],
        {"Plan": {"gateway", "cli"}, "Describe": {"gateway", "cli"}},
    ),
    "podium.router.v1.RouterService": (
        podium_router.servicer.PERMISSIONS,
        router_service_pb2.DESCRIPTOR.services_by_name["RouterService"],
        {
            "Complete": {"gateway", "conductor", "cli"},
            "Perform": {"gateway"},
            "Embed": {"gateway"},
            "ListWorkers": {"gateway", "conductor", "cli"},
        },
    ),
}


@pytest.mark.parametrize("service", CALLERS)
def test_every_rpc_has_its_callers_and_no_others(service: str) -> None:
    permissions, descriptor, expected = CALLERS[service]
    assert isinstance(descriptor, ServiceDescriptor)
    assert {method.name for method in descriptor.methods} == expected.keys()
    assert permissions == {f"/{service}/{name}": frozenset(callers) for name, callers in expected.items()}


def test_every_caller_is_somebody() -> None:
    named = {
        caller for _, _, expected in CALLERS.values() for callers in expected.values() for caller in callers
    }
    assert named <= set(SERVICES)
