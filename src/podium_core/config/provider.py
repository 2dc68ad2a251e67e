"""What each kind of provider in `pool.yaml` needs besides a model: an address, a region, a version, keys."""

from dataclasses import dataclass
from typing import Literal, get_args

ProviderKind = Literal[
    "openai-compatible", "openai", "azure", "anthropic", "gemini", "vertex", "bedrock", "litellm"
]
"""`litellm` is for providers that only this library speaks; its models are written `PREFIX/MODEL`."""

LitellmPrefix = Literal[
    "cohere_chat", "databricks", "fireworks_ai", "groq", "huggingface", "mistral", "ollama_chat"
]
"""The prefixes of which a test shows that the library sends nothing past the router's own transport."""

EMBEDDING_PREFIXES = frozenset({"cohere_chat", "databricks"})
"""Those whose calls for vectors go the same way, as a test shows too."""

_DEFAULT_URLS = {
    "openai": "https://api.openai.com/v1",
    "anthropic": "https://api.anthropic.com",
    "gemini": "https://generativelanguage.googleapis.com/v1beta",
}
_TRANSLATED = frozenset({"anthropic", "gemini", "vertex", "bedrock", "litellm"})
_GLOBAL = "global"
NEEDS_URL = frozenset({"openai-compatible", "azure"})
KEY_REQUIRED = frozenset({"anthropic", "gemini", "vertex", "azure"})


@dataclass(frozen=True, slots=True)
class ProviderFields:
    """The fields of a worker that depend on its provider, as they are written; empty where they are not."""

    kind: ProviderKind
    model: str
    base_url: str
    region: str
    api_version: str
    project: str
    has_key: bool
    has_aws: bool

    @property
    def resolved_url(self) -> str:
        """The address to call; empty when it is the library's own of a `litellm` prefix."""
        if self.kind == "vertex":
            return self._vertex_url
        if self.base_url:
            return self.base_url
        if self.kind == "bedrock":
            return f"https://bedrock-runtime.{self.region}.amazonaws.com"
        return _DEFAULT_URLS.get(self.kind, "")

    @property
    def _vertex_url(self) -> str:
        """The publisher of the models, at its project and location."""
        host = "aiplatform.googleapis.com"
        if self.region != _GLOBAL:
            host = f"{self.region}-{host}"
        base = self.base_url or f"https://{host}"
        return f"{base}/v1/projects/{self.project}/locations/{self.region}/publishers/google"

    def check(self) -> None:
        """Raise ValueError saying which field to add, change or remove."""
        kind = self.kind
        if kind in NEEDS_URL and not self.base_url:
            raise ValueError(f"base_url is required for provider {kind}")
        if self.api_version and kind != "azure":
            raise ValueError("api_version is for provider azure only")
        if kind in KEY_REQUIRED and not self.has_key:
            raise ValueError(f"key is required for provider {kind}")
        if self.project and kind != "vertex":
            raise ValueError("project is for provider vertex only")
        if self.has_aws and kind != "bedrock":
            raise ValueError("aws is for provider bedrock only")
        if kind == "bedrock":
            self._check_bedrock()
        if kind == "vertex" and not (self.project and self.region):
            raise ValueError("provider vertex needs project and region, such as europe-west4 or global")
        if kind == "litellm":
            self._check_prefix()

    def _check_bedrock(self) -> None:
        if not self.region:
            raise ValueError("region is required for provider bedrock, such as eu-central-1")
        if self.has_key == self.has_aws:
            raise ValueError("provider bedrock needs either key (a Bedrock API key) or aws (access keys)")

    def _check_prefix(self) -> None:
        prefix, slash, name = self.model.partition("/")
        if not (slash and name) or prefix not in get_args(LitellmPrefix):
            known = ", ".join(get_args(LitellmPrefix))
            raise ValueError(
                f"model of provider litellm must look like PREFIX/MODEL with a prefix of: {known}"
            )


def is_translated(kind: str) -> bool:
    """Say whether this kind speaks a protocol of its own, which the router translates to."""
    return kind in _TRANSLATED
