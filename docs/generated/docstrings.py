"""Meanings that stand in code: the string under an assignment."""

import ast
import itertools
from collections.abc import Iterable
from pathlib import Path


def meanings(path: Path, *, class_name: str | None = None) -> dict[str, str]:
    """Return the docstring under each name of a module, or of one of its classes."""
    body: Iterable[ast.stmt] = ast.parse(path.read_text(encoding="utf-8")).body
    if class_name is not None:
        body = next(n.body for n in body if isinstance(n, ast.ClassDef) and n.name == class_name)
    found: dict[str, str] = {}
    for statement, below in itertools.pairwise(body):
        if isinstance(statement, ast.Assign | ast.AnnAssign) and isinstance(below, ast.Expr):
            target = statement.target if isinstance(statement, ast.AnnAssign) else statement.targets[0]
            if isinstance(target, ast.Name) and isinstance(below.value, ast.Constant):
                found[target.id] = str(below.value.value)
    return found
