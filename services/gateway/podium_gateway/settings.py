"""What the gateway is told by its environment."""

from pathlib import Path
from typing import Annotated

from pydantic import Field, field_validator

from podium_core.config.gate import load_gate
from podium_core.config.pins import load_pins
from podium_core.config.plans import load_plans
from podium_core.domain.plan import MAX_STEPS
from podium_core.domain.run import Caps
from podium_core.orchestration.limits import RunnerLimits
from podium_core.resources.settings import TenantsSettings
from podium_core.runtime.http_server import ConnectionLimits
from podium_core.runtime.settings_base import check_listen, check_target, settings_config

_MIB = 1024 * 1024


class GatewaySettings(TenantsSettings):
    """podium-gateway: the HTTP edge that speaks to clients and runs the workflow."""

    model_config = settings_config("GATEWAY")

    listen: str = "127.0.0.1:8080"
    """host:port of the HTTP server."""
    gate_file: Path | None = None
    """gate.yaml: which plans are expected to beat one worker, for tenants with `gate: true`. Read again when
    it changes. Without it such tenants get one worker."""
    plans_file: Path | None = None
    """plans.yaml: plans that are served as plan/<name>. Read again when it changes."""
    pins_file: Path | None = None
    """pins.yaml: what podium@<date> stands for. Read again when it changes."""
    conductor_address: str = "127.0.0.1:7051"
    """host:port of the conductor."""
    router_address: str = "127.0.0.1:7052"
    """host:port of the router."""
    audit_address: str = "127.0.0.1:7053"
    """host:port of audit; as for the two above, a name or a list that stands for several replicas will do."""

    max_body_bytes: Annotated[int, Field(ge=1_024, le=48 * _MIB)] = 32 * _MIB
    """Largest request body after decompression; larger ones get 413."""
    body_timeout_s: Annotated[float, Field(gt=0, le=600)] = 30.0
    """Seconds a client may take to send its body."""
    max_concurrent_runs: Annotated[int, Field(ge=1, le=100_000)] = 512
    """Runs at a time; more get 429."""
    max_concurrent_bytes: Annotated[int, Field(ge=48 * _MIB)] = 128 * _MIB
    """Bytes of all runs' requests and answers; more get 429. A large one takes up to eight times its size."""
    max_tenant_share: Annotated[float, Field(gt=0, le=1)] = 0.75
    """Most of these runs and bytes that one tenant may take where there are several; more get 429."""
    first_byte_s: Annotated[float, Field(gt=0, le=60)] = 0.8
    """Seconds until a stream that has nothing to say sends its headers and a comment."""
    keep_alive_s: Annotated[float, Field(gt=0, le=60)] = 10.0
    """Seconds of silence after which a stream sends a comment."""
    write_stall_s: Annotated[float, Field(gt=0, le=600)] = 60.0
    """Seconds a client may leave its stream unread before its run is cancelled."""
    trusted_trace_tenants: tuple[str, ...] = ()
    """Tenants whose traceparent is continued; any other caller's is only linked."""

    max_steps: Annotated[int, Field(ge=1, le=MAX_STEPS)] = MAX_STEPS
    """Most steps of one plan."""
    max_calls: Annotated[int, Field(ge=1, le=1_000)] = 32
    """Most provider calls of one run."""
    max_rounds: Annotated[int, Field(ge=1, le=8)] = 1
    """Most rounds of one run of the tier podium."""
    podium_max_rounds: Annotated[int, Field(ge=1, le=8)] = 3
    """Most rounds of one run of the tier podium-max: after each, the Conductor may revise or accept."""
    podium_max_quorum: Annotated[int, Field(ge=1, le=MAX_STEPS)] | None = None
    """As quorum, for the tier podium-max. Not set: as quorum."""
    podium_max_straggler_wait_s: Annotated[float, Field(gt=0, le=3_600)] | None = None
    """As straggler_wait_s, for the tier podium-max. Not set: as straggler_wait_s."""
    max_attempts_per_step: Annotated[int, Field(ge=1, le=10)] = 3
    """Most attempts of one step, its fallback worker's included."""
    quorum: Annotated[int, Field(ge=1, le=MAX_STEPS)] | None = None
    """A step goes on once this many of the steps it may see have succeeded. Not set: once all are done."""
    straggler_wait_s: Annotated[float, Field(gt=0, le=3_600)] | None = None
    """Seconds a step waits for the rest of what it may see once the first has succeeded. Not set: for all."""
    retry_max_s: Annotated[float, Field(gt=0, le=600)] = 5.0
    """Longest pause before a worker is asked again; one that asks for more is not asked again."""
    inner_step_output_tokens: Annotated[int, Field(ge=1, le=1_000_000)] = 4_096
    """Output limit of steps that do not answer, and of answers whose client set none."""
    plan_timeout_s: Annotated[float, Field(gt=0, le=600)] = 20.0
    """Seconds for one plan; then the fallback plan is used."""
    tell_worker_names: bool = False
    """Tell the Conductor providers and models, which its name masking may then show. Off: only cards."""
    step_timeout_s: Annotated[float, Field(gt=0, le=3_600)] = 300.0
    """Seconds for one attempt."""
    run_timeout_s: Annotated[float, Field(gt=0, le=86_400)] = 1_800.0
    """Seconds for one run."""

    audit_wait_s: Annotated[float, Field(gt=0, le=60)] = 5.0
    """Seconds to wait for audit before a run is refused."""
    seal_wait_s: Annotated[float, Field(gt=0, le=120)] = 15.0
    """Seconds to keep trying to seal a run."""
    lease_s: Annotated[float, Field(ge=3, le=600)] = 15.0
    """Seconds after which audit abandons a run whose gateway is gone; renewed every second."""
    response_ttl_s: Annotated[float, Field(ge=1, le=31_536_000)] = 2_592_000.0
    """Seconds for which a stored response can be read and continued."""
    idempotency_ttl_s: Annotated[float, Field(ge=1, le=2_592_000)] = 86_400.0
    """Seconds for which a request with the same Idempotency-Key gets the same answer."""
    idempotency_linger_s: Annotated[float, Field(ge=0, le=3_600)] = 600.0
    """Seconds that a run with an Idempotency-Key goes on after its last listener has gone."""
    continuation_ttl_s: Annotated[float, Field(ge=1, le=2_592_000)] = 86_400.0
    """Seconds for which a tool call may be answered: so long audit keeps what its worker was sent."""
    pool_refresh_s: Annotated[float, Field(gt=0, le=600)] = 3.0
    """Seconds between looks at the router's pool."""
    drain_delay_s: Annotated[float, Field(ge=0, le=300)] = 0.0
    """Seconds between turning unready and closing the door on SIGTERM, for load balancers to notice."""
    drain_timeout_s: Annotated[float, Field(ge=0, le=3_600)] = 30.0
    """Seconds that running requests get to finish on SIGTERM; then they are cancelled and sealed."""

    @property
    def caps(self) -> Caps:
        """The server's limits on any run."""
        return Caps(
            max_steps=self.max_steps,
            max_calls=self.max_calls,
            max_rounds=self.max_rounds,
            max_attempts_per_step=self.max_attempts_per_step,
            quorum=self.quorum,
            straggler_wait_s=self.straggler_wait_s,
        )

    @property
    def connection_limits(self) -> ConnectionLimits:
        """What clients' connections may do; there is room for as many waiting as working ones."""
        most = max(ConnectionLimits().max_connections, 2 * self.max_concurrent_runs)
        return ConnectionLimits(max_connections=most, stall_s=self.write_stall_s)

    @property
    def runner_limits(self) -> RunnerLimits:
        """The runner's bounds."""
        return RunnerLimits(
            plan_timeout_s=self.plan_timeout_s,
            step_timeout_s=self.step_timeout_s,
            run_timeout_s=self.run_timeout_s,
            seal_timeout_s=self.seal_wait_s,
            retry_max_s=self.retry_max_s,
            inner_step_output_tokens=self.inner_step_output_tokens,
        )

    def check(self) -> None:
        """Read what the settings point to."""
        super().check()
        if self.gate_file is not None:
            load_gate(self.gate_file)
        if self.plans_file is not None:
            load_plans(self.plans_file)
        if self.pins_file is not None:
            load_pins(self.pins_file)

    @field_validator("listen")
    @classmethod
    def _check_listen(cls, value: str) -> str:
        return check_listen(value)

    @field_validator("conductor_address", "router_address", "audit_address")
    @classmethod
    def _check_target(cls, value: str) -> str:
        return check_target(value)
