import ast
import sys
from pathlib import Path

import podium_verifier


def test_the_verifier_needs_the_standard_library_cryptography_and_nothing_of_podium() -> None:
    roots = set()
    for path in Path(podium_verifier.__file__).parent.glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Import):
                roots |= {alias.name.split(".")[0] for alias in node.names}
            elif isinstance(node, ast.ImportFrom):
                roots.add(str(node.module).split(".")[0])
    assert roots - sys.stdlib_module_names == {"cryptography", "podium_verifier"}
