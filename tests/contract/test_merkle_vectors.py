"""The public inclusion vectors of transparency-dev/merkle, good and bad, judged by the verifier.

They are read from the folder that PODIUM_TEST_VECTORS names, and are not part of this repository.
"""

import base64
import json
import os
from pathlib import Path

import pytest

from podium_verifier.merkle import is_included

_DEFAULT = Path(__file__).parents[2] / "../shared/vectors/merkle/testdata"
VECTORS = Path(os.environ.get("PODIUM_TEST_VECTORS", _DEFAULT)) / "inclusion"
CASES = sorted(VECTORS.rglob("*.json"))


@pytest.mark.skipif(
    not CASES, reason="no public Merkle vectors here; name their folder in PODIUM_TEST_VECTORS"
)
def test_every_inclusion_vector_is_judged_right() -> None:
    wrong = []
    for path in CASES:
        case = json.loads(path.read_text())
        included = is_included(
            base64.b64decode(case["leafHash"]),
            case["leafIdx"],
            case["treeSize"],
            [base64.b64decode(item) for item in case["proof"] or ()],
            base64.b64decode(case["root"]),
        )
        if included == case["wantErr"]:
            wrong.append(f"{path.relative_to(VECTORS)}: {case['desc']}")
    assert wrong == []
    assert {json.loads(path.read_text())["wantErr"] for path in CASES} == {True, False}
