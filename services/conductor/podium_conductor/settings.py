"""Everything the conductor can be told, as environment variables `PODIUM_CONDUCTOR_*`."""

from pathlib import Path
from typing import Annotated, Literal

from pydantic import AfterValidator, Field

from podium_conductor.engines.embedded.weights import read_weights, shipped_folder
from podium_conductor.engines.vllm.checkpoint import check_checkpoint
from podium_conductor.engines.vllm.options import PlanOptions, ServingOptions
from podium_conductor.engines.worker.engine import WorkerEngineOptions
from podium_conductor.planning import PlanningLimits
from podium_core.domain.errors import invalid
from podium_core.domain.plan import MAX_STEPS
from podium_core.domain.plan_prompt import NameMasking
from podium_core.runtime.settings_base import GrpcServiceSettings, check_listen, check_target, settings_config

Seconds = Annotated[float, Field(gt=0, le=3_600, allow_inf_nan=False)]
Count = Annotated[int, Field(ge=1, le=100_000)]


class ConductorSettings(GrpcServiceSettings):
    """The conductor: writes for each question the plan that the workers then perform."""

    model_config = settings_config("CONDUCTOR")

    listen: Annotated[str, AfterValidator(check_listen)] = "127.0.0.1:7051"
    """host:port of the gRPC server."""
    engine: Literal["embedded", "worker", "vllm"] = "embedded"
    """What makes the plans. embedded: a small model of our own training, in this process, on any CPU.
    worker: a worker of the pool, prompted as Conductor through the router, on each run's account. vllm: a
    language model in this process."""
    router_address: Annotated[str, AfterValidator(check_target)] = "127.0.0.1:7052"
    """host:port of the router. Only the engine `worker` calls it."""
    audit_address: Annotated[str, AfterValidator(check_target)] = "127.0.0.1:7053"
    """host:port of the audit service, which notes what plans and each change of it."""
    planning_worker: str = ""
    """The worker that plans for the engine `worker`; it must be eligible for the run. Empty: the best
    eligible worker by card."""
    planning_output_tokens: Annotated[int, Field(ge=64, le=32_768)] = 1_024
    """Output limit of one plan by the engine `worker`."""
    max_generations: Annotated[int, Field(ge=1, le=8)] = 3
    """Most tries for a plan that can be read, the first included; each broken rule is told back."""
    name_masking: NameMasking = NameMasking.ORDINAL
    """What a model is told of workers besides their cards. ordinal: nothing; sized: parameter counts; named:
    provider and model. The last two need a gateway that tells them (tell_worker_names)."""
    max_steps: Annotated[int, Field(ge=1, le=MAX_STEPS)] = MAX_STEPS
    """Most steps of a plan. A request can only ask for fewer."""
    max_concurrent_plans: Count = 8
    """Plans that are made at the same time; more wait."""
    max_waiting_plans: Annotated[int, Field(ge=0, le=100_000)] = 256
    """Calls that may wait for their turn; more are refused with a time to come back."""
    max_plan_s: Seconds = 60.0
    """Longest time for one plan, waiting included. A call's own deadline can only be shorter."""
    drain_s: Seconds = 10.0
    """How long running calls may take to end when the service stops."""

    model_path: Path | None = None
    """vllm: folder of the checkpoint. embedded: folder of the weights; empty: those that ship. A link to a
    folder may be pointed elsewhere while vllm serves: the new checkpoint is loaded beside the old one and
    then takes over."""
    adapter_path: Path | None = None
    """vllm: folder of a LoRA adapter for the checkpoint. Empty: none."""
    model_dtype: Literal["auto", "bfloat16", "float16", "float32"] = "auto"
    """vllm: number format of the weights. auto: the checkpoint's own."""
    context_tokens: Annotated[int, Field(ge=1_024, le=1_000_000)] = 8_192
    """vllm: most tokens of prompt and plan together; at most what the checkpoint allows."""
    max_sequences: Annotated[int, Field(ge=1, le=4_096)] = 64
    """vllm: most texts that are generated in one batch."""
    tensor_parallel: Annotated[int, Field(ge=1, le=64)] = 1
    """vllm: GPUs that share one model."""
    executor: Literal["auto", "mp", "ray"] = "auto"
    """vllm: how those GPUs are driven. mp: processes of this machine, ray: a Ray cluster."""
    gpu_memory_share: Annotated[float, Field(gt=0, lt=1)] = 0.9
    """vllm: share of a GPU's memory to use. A switch of checkpoints needs room for both."""
    cpu_cache_gib: Annotated[int, Field(ge=1, le=4_096)] = 4
    """vllm on CPUs: memory for what is kept of prompts, in GiB."""
    eager: bool = False
    """vllm: do not compile the model; starts sooner, runs slower on GPUs."""
    prefix_caching: bool = True
    """vllm: keep the fixed part of the prompt between plans."""
    completion_tokens: Annotated[int, Field(ge=128, le=16_384)] = 1_024
    """vllm: most tokens of one plan, reasoning included."""
    reasoning_tokens: Annotated[int, Field(ge=0, le=16_384)] = 256
    """vllm: most tokens of free reasoning before the lists. 0: none."""
    temperature: Annotated[float, Field(ge=0, le=2)] = 0.0
    """vllm: 0 takes the likeliest token; above, tokens are drawn with the request's seed."""
    choice_chances: bool = True
    """vllm: record how probable each worker was at each choice."""

    def check(self) -> None:
        """Check also what the engine is to load."""
        super().check()
        if self.engine == "vllm":
            check_checkpoint(self.model_folder, self.adapter_path)
        if self.engine == "embedded":
            read_weights(self.embedded_folder)

    @property
    def serving_options(self) -> ServingOptions:
        """How the vllm engine loads its model. Raises PodiumError MODEL_PATH_MISSING without a path."""
        return ServingOptions(
            model_path=self.model_folder,
            adapter_path=self.adapter_path,
            dtype=self.model_dtype,
            context_tokens=self.context_tokens,
            max_sequences=self.max_sequences,
            tensor_parallel=self.tensor_parallel,
            executor=self.executor,
            gpu_memory_share=self.gpu_memory_share,
            cpu_cache_gib=self.cpu_cache_gib,
            eager=self.eager,
            prefix_caching=self.prefix_caching,
        )

    @property
    def plan_options(self) -> PlanOptions:
        """How the vllm engine writes plans."""
        return PlanOptions(
            completion_tokens=self.completion_tokens,
            reasoning_tokens=self.reasoning_tokens,
            temperature=self.temperature,
            chances=self.choice_chances,
            masking=self.name_masking,
        )

    @property
    def model_folder(self) -> Path:
        """The model path. Raises PodiumError MODEL_PATH_MISSING."""
        if self.model_path is None:
            raise invalid(
                f"engine={self.engine} needs PODIUM_CONDUCTOR_MODEL_PATH, a folder of this machine",
                reason="MODEL_PATH_MISSING",
            )
        return self.model_path

    @property
    def embedded_folder(self) -> Path:
        """The weights of the embedded engine: the model path, or those that ship. Raises PodiumError."""
        return self.model_path or shipped_folder()

    @property
    def worker_engine(self) -> WorkerEngineOptions:
        """Bounds of the engine `worker`."""
        return WorkerEngineOptions(
            worker_id=self.planning_worker,
            max_generations=self.max_generations,
            max_output_tokens=self.planning_output_tokens,
            masking=self.name_masking,
        )

    @property
    def planning_limits(self) -> PlanningLimits:
        """Bounds of planning."""
        return PlanningLimits(
            max_steps=self.max_steps,
            max_running=self.max_concurrent_plans,
            max_waiting=self.max_waiting_plans,
            max_plan_s=self.max_plan_s,
        )
