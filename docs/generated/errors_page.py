"""docs/errors.md: every code with its statuses, every reason with the code it comes under."""

import ast
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path

from docs.generated.docstrings import meanings
from docs.generated.markdown import table
from podium_core.domain import errors
from podium_core.domain.errors import Code
from podium_core.runtime.grpc_errors import STATUS_OF_CODE
from podium_gateway.errors import HTTP_TABLE

_REASON = re.compile(r"[A-Z][A-Z0-9]*(_[A-Z0-9]+)+")
_PLACES = (
    ("runtime", "src/podium_core"),
    ("gateway", "services/gateway"),
    ("conductor", "services/conductor"),
    ("router", "services/router"),
    ("audit", "services/audit"),
)
_SKIPPED = ("settings.py", "/wire/", "domain/errors.py", "grpc_errors.py")
_NO_REASONS = frozenset(
    {
        "DRY_RUN",
        "DO_NOT_TRACK",
        "HF_HUB_OFFLINE",
        "TORCHDYNAMO_DISABLE",
        "TRANSFORMERS_OFFLINE",
        "VLLM_CONFIGURE_LOGGING",
        "VLLM_CPU_KVCACHE_SPACE",
        "VLLM_LOGGING_LEVEL",
        "VLLM_NO_USAGE_STATS",
    }
)
_CODE_OF_FILE = {"plan_format.py": "PLAN_INVALID", "vllm/checkpoint.py": "INVALID_REQUEST"}
_CODE_OF_CALL = {"invalid": "INVALID_REQUEST", "refuse": "INVALID_REQUEST", "_denied": "POLICY_DENIED"}
_HEAD = """\
# Errors

Generated from code by `make docs`. One vocabulary: a coarse *code*, and a stable *reason* that says more.

Between services an error is a gRPC status whose `google.rpc.ErrorInfo` has the domain `podium`, the reason,
and code and field in its metadata. HTTP clients get OpenAI's error body: `error.type` as below, `error.code`
is the reason in lower case, `error.param` the field to blame, `error.message` what to change. Where trying
again cannot help, the response says `x-should-retry: false`, which the official clients obey; where it can,
`retry-after` may say when. Once a run was opened, the response carries `x-podium-run-id`, failed or not.

## Codes

"""


def render(root: Path) -> str:
    """Return the page."""
    meaning_of = meanings(Path(errors.__file__), class_name="Code")
    codes = table(
        ("code", "gRPC status", "HTTP", "OpenAI type", "retry helps", "meaning"),
        (
            (
                f"`{code}`",
                STATUS_OF_CODE[code].name,
                str(HTTP_TABLE[code].status),
                f"`{HTTP_TABLE[code].type}`",
                "yes" if HTTP_TABLE[code].is_retryable else "no",
                meaning_of[code.name],
            )
            for code in Code
        ),
    )
    reasons = table(
        ("reason", "code", "comes from"),
        (
            (f"`{name}`", ", ".join(sorted(found["codes"])), ", ".join(sorted(found["places"])))
            for name, found in sorted(_reasons(root).items())
        ),
    )
    return f"{_HEAD}{codes}\n## Reasons\n\nAn error without one of these has its code as reason.\n\n{reasons}"


def _reasons(root: Path) -> dict[str, dict[str, set[str]]]:
    found: dict[str, dict[str, set[str]]] = defaultdict(lambda: {"codes": set(), "places": set()})
    for place, directory in _PLACES:
        for path in sorted((root / directory).rglob("*.py")):
            if any(part in path.as_posix() for part in _SKIPPED):
                continue
            for reason, code in _reasons_in(ast.parse(path.read_text(encoding="utf-8"))):
                found[reason]["places"].add(place)
                found[reason]["codes"] |= {code or _code_of_file(path)} - {""}
    return found


def _code_of_file(path: Path) -> str:
    return next((code for end, code in _CODE_OF_FILE.items() if path.as_posix().endswith(f"/{end}")), "")


def _reasons_in(tree: ast.Module) -> Iterator[tuple[str, str]]:
    """Yield every reason word in a module, with its code where its neighbours or its function name it."""
    code_of_function = dict(_CODE_OF_CALL)
    code_of_word: dict[int, str] = {}
    for node in ast.walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            inside = list(ast.walk(node))
            called = {_CODE_OF_CALL.get(_function_name(part), "") for part in inside}
            codes = (set(_codes(inside)) | called) - {""}
            code_of_function[node.name] = codes.pop() if len(codes) == 1 else ""
            code_of_word |= {id(default): code_of_function[node.name] for default in _defaults(node)}
    words: list[ast.Constant] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and _is_reason(node):
            words.append(node)
        elif isinstance(node, (ast.Call, ast.Tuple)):
            code = _code_beside(node, code_of_function)
            code_of_word |= {id(part): code for part in _parts(node) if code}
    for word in words:
        yield str(word.value), code_of_word.get(id(word), "")


def _defaults(node: ast.FunctionDef | ast.AsyncFunctionDef) -> list[ast.expr]:
    return [default for default in (*node.args.defaults, *node.args.kw_defaults) if default is not None]


def _code_beside(node: ast.Call | ast.Tuple, code_of_function: dict[str, str]) -> str:
    codes = _codes(_parts(node))
    if codes:
        return codes[0]
    return code_of_function.get(_function_name(node), "")


def _function_name(node: ast.AST) -> str:
    return node.func.id if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) else ""


def _parts(node: ast.Call | ast.Tuple) -> list[ast.expr]:
    return node.elts if isinstance(node, ast.Tuple) else [*node.args, *(k.value for k in node.keywords)]


def _codes(nodes: Iterable[ast.AST]) -> list[str]:
    return [
        node.attr
        for node in nodes
        if isinstance(node, ast.Attribute)
        and isinstance(node.value, ast.Name)
        and node.value.id == "Code"
        and node.attr in Code.__members__
    ]


def _is_reason(node: ast.Constant) -> bool:
    word = node.value
    return (
        isinstance(word, str)
        and word not in _NO_REASONS | Code.__members__.keys()
        and _REASON.fullmatch(word) is not None
    )
