"""vLLM in this process: the one module that imports it. Everything model-specific ends here."""

import asyncio
import logging
import os
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack, aclosing
from itertools import count
from typing import Any, cast

from podium_conductor.engines.vllm.checkpoint import adapter_rank, context_limit
from podium_conductor.engines.vllm.model import Generation, Load, Sampling
from podium_conductor.engines.vllm.options import ServingOptions
from podium_core.domain.errors import Code, PodiumError, invalid
from podium_core.domain.plan_transcript import broken_up

_log = logging.getLogger(__name__)

# vLLM and the libraries below it read these once, at import. No hub, no usage reports, ever.
os.environ.update(  # noqa: TID251 - there is no other way to tell them
    HF_HUB_OFFLINE="1", TRANSFORMERS_OFFLINE="1", VLLM_NO_USAGE_STATS="1", DO_NOT_TRACK="1"
)
os.environ.setdefault("VLLM_LOGGING_LEVEL", "WARNING")  # noqa: TID251
os.environ.setdefault("VLLM_CONFIGURE_LOGGING", "1")  # noqa: TID251

from vllm import SamplingParams  # noqa: E402 - after the environment it reads
from vllm.engine.arg_utils import AsyncEngineArgs  # noqa: E402
from vllm.exceptions import VLLMClientError  # noqa: E402
from vllm.inputs import TokensPrompt  # noqa: E402
from vllm.lora.request import LoRARequest  # noqa: E402
from vllm.platforms import current_platform  # noqa: E402
from vllm.sampling_params import RequestOutputKind, StructuredOutputsParams  # noqa: E402
from vllm.v1.engine.async_llm import AsyncLLM  # noqa: E402
from vllm.v1.engine.exceptions import EngineDeadError, EngineGenerateError  # noqa: E402
from vllm.v1.metrics.loggers import StatLoggerBase  # noqa: E402

_SEEDS = 2**63
_SHUTDOWN_S = 5.0
_MIN_BATCH = 4_096
_CPU_BLOCK_TOKENS = 32
_MAX_TOKENS_ASKED = 128
_WARM_UP = "Warm up: write nothing that matters, at some length. " * 40


class VllmModel:
    """A TextModel that vLLM serves. Make it with `load_model`."""

    def __init__(self, engine: AsyncLLM, load: "_LoadWatch", adapter: LoRARequest | None) -> None:
        self._engine = engine
        self._load = load
        self._adapter = adapter
        self._numbers = count()
        self._tokenizer: Any = engine.get_tokenizer()
        added = {str(token) for token in self._tokenizer.get_added_vocab()}
        self._special = tuple(added | set(self._tokenizer.all_special_tokens))

    @property
    def context_tokens(self) -> int:
        """The most tokens of prompt and completion together."""
        return int(self._engine.model_config.max_model_len)

    def render(self, system: str, user: str, prefill: str) -> str:
        """Return the chat in the model's template; special tokens within the messages are broken up."""
        messages = [
            {"role": "system", "content": broken_up(system, self._special)},
            {"role": "user", "content": broken_up(user, self._special)},
        ]
        # A template that can switch thinking off does; the plan brings its own reasoning.
        text = self._tokenizer.apply_chat_template(
            messages, tokenize=False, add_generation_prompt=True, enable_thinking=False
        )
        return f"{text}{prefill}"

    def encode(self, text: str) -> list[int]:
        """Return the tokens of `text`, none added."""
        return list(self._tokenizer.encode(text, add_special_tokens=False))

    def decode(self, token_ids: Sequence[int]) -> str:
        """Return the text of tokens."""
        return str(
            self._tokenizer.decode(
                list(token_ids), skip_special_tokens=True, clean_up_tokenization_spaces=False
            )
        )

    async def generate(
        self,
        prompt: Sequence[int],
        *,
        max_tokens: int,
        sampling: Sampling,
        grammar: str | None = None,
        stop: tuple[str, ...] = (),
    ) -> Generation:
        """Continue a prompt; when cancelled, vLLM drops the request."""
        structured = None if grammar is None else StructuredOutputsParams(grammar=grammar)
        parameters = SamplingParams(
            temperature=sampling.temperature,
            seed=sampling.seed % _SEEDS,
            max_tokens=max_tokens,
            stop=list(stop),
            structured_outputs=structured,
            output_kind=RequestOutputKind.FINAL_ONLY,
        )
        final = await self._run(prompt, parameters)
        output = final.outputs[0]
        ids = tuple(output.token_ids)
        return Generation(output.text, ids, output.finish_reason == "length", final.num_cached_tokens or 0)

    async def log_probabilities(self, prompt: Sequence[int], tokens: Sequence[int]) -> Mapping[int, float]:
        """Return the log-probability of each token coming next."""
        if len(tokens) > _MAX_TOKENS_ASKED:
            raise invalid("too many tokens to compare at once")
        parameters = SamplingParams(
            temperature=0.0,
            max_tokens=1,
            logprob_token_ids=list(tokens),
            detokenize=False,
            output_kind=RequestOutputKind.FINAL_ONLY,
        )
        found = (await self._run(prompt, parameters)).outputs[0].logprobs[0]
        return {token: float(found[token].logprob) for token in tokens}

    async def warm_up(self) -> None:
        """Run a long prompt and a grammar, so that the first plan meets neither a cold kernel nor a trap.

        The bf16 attention kernel for short prompts on CPUs with AMX dies unless a long one ran before.
        """
        prompt = self.encode(self.render("You are being warmed up.", _WARM_UP, ""))
        prompt = prompt[: self.context_tokens - 16]
        await self.generate(prompt, max_tokens=8, sampling=Sampling())
        await self.generate(prompt, max_tokens=8, sampling=Sampling(), grammar='root ::= "[" [0-9] "]"')
        await self.log_probabilities(prompt, self.encode("[1]"))

    def load(self) -> Load:
        """Return what the last step of the engine saw."""
        return self._load.seen

    def is_stopped(self) -> bool:
        """Tell whether the engine behind has died."""
        return bool(self._engine.errored)

    async def close(self) -> None:
        """Stop vLLM's processes and free the memory."""
        await asyncio.to_thread(self._engine.shutdown, _SHUTDOWN_S)

    async def _run(self, prompt: Sequence[int], parameters: SamplingParams) -> Any:
        try:
            async with aclosing(
                cast(
                    "Any",
                    self._engine.generate(
                        TokensPrompt(prompt_token_ids=list(prompt)),
                        parameters,
                        f"podium-{next(self._numbers)}",
                        lora_request=self._adapter,
                    ),
                )
            ) as outputs:
                async for output in outputs:
                    if output.finished:
                        return output
        except EngineDeadError:
            pass
        except EngineGenerateError:
            raise PodiumError(
                Code.UNAVAILABLE, "the Conductor's model failed on this request", reason="MODEL_FAILED"
            ) from None
        except (VLLMClientError, ValueError):
            raise invalid(
                "the Conductor's model cannot take this request", reason="MODEL_REFUSED_REQUEST"
            ) from None
        raise PodiumError(Code.UNAVAILABLE, "the Conductor's model has stopped", reason="MODEL_STOPPED")


async def load_model(options: ServingOptions) -> VllmModel:
    """Load a checked checkpoint and warm it up; takes from seconds to minutes.

    Raises PodiumError UNAVAILABLE (MODEL_NOT_LOADED) when vLLM cannot serve it here.
    """
    # Read by the processes that vLLM starts.
    os.environ["VLLM_CPU_KVCACHE_SPACE"] = str(options.cpu_cache_gib)  # noqa: TID251
    if options.eager:
        os.environ["TORCHDYNAMO_DISABLE"] = "1"  # noqa: TID251
    watch: list[_LoadWatch] = []

    def make_watch(config: Any, index: int = 0) -> "_LoadWatch":
        watch.append(_LoadWatch(config, index))
        return watch[-1]

    try:
        engine = await asyncio.to_thread(_start, options, make_watch)
    except (RuntimeError, ValueError, OSError, ImportError):
        _log.warning("vLLM did not start", exc_info=True)
        raise PodiumError(
            Code.UNAVAILABLE,
            "vLLM cannot serve this checkpoint here; PODIUM_CONDUCTOR_LOG_LEVEL=DEBUG logs why",
            reason="MODEL_NOT_LOADED",
        ) from None
    adapter = None
    if options.adapter_path is not None:
        adapter = LoRARequest("conductor", 1, str(options.adapter_path))
    model = VllmModel(engine, watch[0] if watch else _LoadWatch(None), adapter)
    async with AsyncExitStack() as unless_warm:
        unless_warm.push_async_callback(model.close)
        await model.warm_up()
        unless_warm.pop_all()
    return model


def _start(options: ServingOptions, make_watch: Any) -> AsyncLLM:
    context = min(options.context_tokens, context_limit(options.model_path) or options.context_tokens)
    arguments: dict[str, Any] = {
        "model": str(options.model_path),
        "dtype": options.dtype,
        "max_model_len": context,
        "max_num_seqs": options.max_sequences,
        "tensor_parallel_size": options.tensor_parallel,
        "enforce_eager": options.eager,
        "enable_prefix_caching": options.prefix_caching,
        "structured_outputs_config": {"backend": "xgrammar"},
        "max_logprobs": _MAX_TOKENS_ASKED,
        "gpu_memory_utilization": options.gpu_memory_share,
        "trust_remote_code": False,
        "enable_log_requests": False,
        "generation_config": "vllm",
    }
    if current_platform.is_cpu():
        # A seeded request whose prompt is split over steps kills the CPU build ("Generator does not use
        # offset"), so prompts are never split there. The prefix cache keeps whole blocks only: with the 128
        # tokens that are usual on CPUs a look-up of one token reads 64 again.
        arguments |= {
            "enable_chunked_prefill": False,
            "max_num_batched_tokens": max(context, _MIN_BATCH),
            "block_size": _CPU_BLOCK_TOKENS,
        }
    if options.executor != "auto":
        arguments["distributed_executor_backend"] = options.executor
    if options.adapter_path is not None:
        arguments |= {"enable_lora": True, "max_lora_rank": _lora_rank(adapter_rank(options.adapter_path))}
    engine: AsyncLLM = AsyncLLM.from_engine_args(AsyncEngineArgs(**arguments), stat_loggers=[make_watch])
    return engine


def _lora_rank(rank: int) -> int:
    """Return the smallest rank that vLLM reserves memory for and that holds `rank`."""
    return next((size for size in (8, 16, 32, 64, 128, 256, 320, 512) if size >= rank), rank)


class _LoadWatch(StatLoggerBase):  # type: ignore[misc]  # vLLM ships no types here
    """Keeps the newest figures of the scheduler."""

    def __init__(self, vllm_config: Any, engine_index: int = 0) -> None:
        del vllm_config, engine_index
        self.seen = Load()

    def record(
        self, scheduler_stats: Any, iteration_stats: Any, mm_cache_stats: Any = None, engine_idx: int = 0
    ) -> None:
        """Take in one step's figures."""
        del iteration_stats, mm_cache_stats, engine_idx
        if scheduler_stats is not None:
            prefix = scheduler_stats.prefix_cache_stats
            self.seen = Load(
                scheduler_stats.num_running_reqs,
                scheduler_stats.num_waiting_reqs,
                scheduler_stats.kv_cache_usage,
                self.seen.prefix_asked + prefix.queries,
                self.seen.prefix_found + prefix.hits,
            )

    def log_engine_initialized(self) -> None:
        """Nothing to say."""
