"""The scale-out recipes: verl's settings and KubeRay's manifest say what they claim, and their owners accept them."""

import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from podium_train.learning.grpo_recipe import PAPER_7B
from tests.unit.train.crd_schema import problems, schema_of

ROOT = Path(__file__).parents[3]
RECIPES = ROOT / "training" / "recipes"
RAYJOB = yaml.safe_load((RECIPES / "kuberay" / "rayjob.yaml").read_text(encoding="utf-8"))
COMMANDS = (RECIPES / "paper-7b.md").read_text(encoding="utf-8")


# --- KubeRay -----------------------------------------------------------------------------------------


def groups() -> dict[str, Any]:
    cluster = RAYJOB["spec"]["rayClusterSpec"]
    return {group["groupName"]: group for group in cluster["workerGroupSpecs"]} | {
        "head": cluster["headGroupSpec"]
    }


def pods() -> Iterator[tuple[str, dict[str, Any]]]:
    for name, group in groups().items():
        yield name, group["template"]["spec"]


def test_the_cluster_goes_away_with_its_run_and_a_failed_run_goes_on() -> None:
    spec = RAYJOB["spec"]
    assert spec["shutdownAfterJobFinishes"] is True
    assert spec["backoffLimit"] >= 1
    assert spec["activeDeadlineSeconds"] > 0


def test_only_the_gpu_group_has_gpus_and_its_size_is_fixed() -> None:
    found = groups()
    for name, pod in pods():
        limits = pod["containers"][0]["resources"]["limits"]
        assert ("nvidia.com/gpu" in limits) == (name == "gpu")
        if name != "gpu":
            assert found[name]["rayStartParams"]["num-gpus"] == "0"
    gpu = found["gpu"]
    assert gpu["replicas"] == gpu["minReplicas"] == gpu["maxReplicas"]


def test_no_pod_runs_as_root_gains_rights_or_holds_a_token() -> None:
    for _, pod in pods():
        assert pod["automountServiceAccountToken"] is False
        assert pod["securityContext"]["runAsNonRoot"] is True
        for container in pod["containers"]:
            assert container["securityContext"] == {
                "allowPrivilegeEscalation": False,
                "capabilities": {"drop": ["ALL"]},
            }


def test_every_variable_that_the_verl_recipe_reads_reaches_the_ray_workers() -> None:
    text = (RECIPES / "verl" / "conductor_grpo.yaml").read_text(encoding="utf-8")
    given = yaml.safe_load(RAYJOB["spec"]["runtimeEnvYAML"])["env_vars"]
    read = {part.split("}")[0].split(",")[0] for part in text.split("${oc.env:")[1:]}
    assert read <= set(given)
    assert all(isinstance(value, str) for value in given.values())


@pytest.mark.skipif(
    "PODIUM_KUBERAY_CRD" not in os.environ,
    reason="PODIUM_KUBERAY_CRD names no ray.io_rayjobs.yaml of KubeRay's releases",
)
def test_kuberay_accepts_the_manifest() -> None:
    text = Path(os.environ["PODIUM_KUBERAY_CRD"]).read_text(encoding="utf-8")
    schema = schema_of(yaml.load(text, getattr(yaml, "CSafeLoader", yaml.SafeLoader)), "v1")
    assert list(problems(schema, RAYJOB)) == []
    broken = json.loads(json.dumps(RAYJOB))
    broken["spec"]["shutdownAfterJobFinish"] = True
    broken["spec"]["rayClusterSpec"]["workerGroupSpecs"][0]["replicas"] = "1"
    assert len(list(problems(schema, broken))) == 2, "this check would see a misspelt field and a wrong type"


def test_the_schema_check_sees_each_kind_of_mistake() -> None:
    schema = {
        "type": "object",
        "required": ["name"],
        "properties": {
            "name": {"type": "string", "pattern": "^[a-z]+$"},
            "count": {"type": "integer", "minimum": 1},
            "port": {"x-kubernetes-int-or-string": True, "anyOf": [{"type": "integer"}, {"type": "string"}]},
            "labels": {"type": "object", "additionalProperties": {"type": "string"}},
            "items": {"type": "array", "items": {"type": "string", "enum": ["a", "b"]}},
        },
    }
    good = {"name": "x", "count": 2, "port": "http", "labels": {"a": "b"}, "items": ["a", "b"]}
    assert list(problems(schema, good)) == []
    bad = {"count": 0, "port": 1.5, "labels": {"a": 1}, "items": ["c"], "other": 1}
    assert [problem.split(":")[0] for problem in problems(schema, bad)] == [
        ".name", ".count", ".port", ".labels.a", ".items[0]", ".other",
    ]  # fmt: skip
    assert list(problems(schema, {"name": "X", "count": True, "port": None}))


# --- verl --------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def composed() -> dict[str, Any]:
    python = os.environ.get("PODIUM_TEST_VERL_PYTHON")
    if python is None:
        pytest.skip("`make train-test` has an environment with verl's configuration")
    environment = {f"PODIUM_TRAIN_{name}": f"/{name.lower()}" for name in ("ROWS", "MODEL", "OUT", "DATA")}
    script = ROOT / "tests" / "train_real" / "compose_verl.py"
    done = subprocess.run(
        [python, str(script), str(RECIPES)],
        env=environment,
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def paths(tree: dict[str, Any], before: str = "") -> Iterator[str]:
    for name, value in tree.items():
        if isinstance(value, dict) and value:
            yield from paths(value, f"{before}{name}.")
        else:
            yield f"{before}{name}"


def test_verl_knows_every_setting_that_the_recipe_changes(composed: dict[str, Any]) -> None:
    assert set(paths(composed["ours"])) - set(paths(composed["theirs"])) == set()


def test_the_verl_recipe_is_paper_7b(composed: dict[str, Any]) -> None:
    ours = composed["resolved"]
    actor, rollout = ours["actor_rollout_ref"]["actor"], ours["actor_rollout_ref"]["rollout"]
    assert ours["trainer"]["total_training_steps"] == PAPER_7B.iterations
    assert (ours["data"]["train_batch_size"], rollout["n"]) == (PAPER_7B.prompts, PAPER_7B.rollouts)
    assert rollout["response_length"] == ours["data"]["max_response_length"] == PAPER_7B.completion_tokens
    assert (rollout["temperature"], rollout["max_model_len"]) == (
        PAPER_7B.temperature,
        PAPER_7B.context_tokens,
    )
    assert actor["optim"]["lr"] == PAPER_7B.learning_rate
    assert actor["optim"]["lr_warmup_steps_ratio"] == PAPER_7B.warmup_share
    assert actor["optim"]["lr_scheduler_type"] == PAPER_7B.schedule
    assert tuple(actor["optim"]["betas"]) == PAPER_7B.adam_betas
    assert (actor["clip_ratio_low"], actor["clip_ratio_high"]) == (PAPER_7B.clip_low, PAPER_7B.clip_high)
    assert (actor["use_kl_loss"], ours["algorithm"]["use_kl_in_reward"]) == (False, False)
    assert ours["algorithm"]["adv_estimator"] == "grpo"
    assert actor["fsdp_config"]["model_dtype"] == "fp32"
    assert actor["ppo_mini_batch_size"] == ours["data"]["train_batch_size"], "every update is on-policy"


def test_verl_never_counts_a_failure_of_the_surroundings_as_a_wrong_answer(composed: dict[str, Any]) -> None:
    reward = composed["resolved"]["reward"]
    assert reward["reward_manager"]["name"] == "naive", "`rate_limited` scores a timeout 0"
    assert (ROOT / reward["custom_reward_function"]["path"]).is_file()


# --- the written recipe ------------------------------------------------------------------------------


def test_every_file_that_the_written_recipe_names_is_there() -> None:
    named = {
        word.strip("`,.()")
        for word in COMMANDS.split()
        if word.strip("`,.()").startswith("training/recipes/")
    }
    assert named
    assert [path for path in sorted(named) if not (ROOT / path).exists()] == []
