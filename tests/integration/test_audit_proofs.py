"""Proofs over HTTP: consistency for any key, tiles and leaves for examiners only."""

import base64
import json
from pathlib import Path

from podium_verifier.merkle import is_consistent, leaf_hash
from podium_verifier.signed_note import open_checkpoint, parse_vkey
from tests.fakes.audit_service import running_audit


async def test_any_two_checkpoints_of_the_log_are_shown_to_agree(tmp_path: Path, tls_dir: Path) -> None:
    async with running_audit(tmp_path, tls_dir) as audit:
        key = parse_vkey((await audit.get("/v1/vkey"))[1].decode().strip())
        seen = []
        for number in range(3):
            await audit.run(f"run_{number}")
            seen.append(open_checkpoint((await audit.get("/checkpoint", "key1"))[1].decode(), key))
        for old, new in ((0, 1), (0, 2), (1, 2), (2, 2)):
            first, last = seen[old], seen[new]
            status, said = await audit.get(f"/v1/consistency?from={first.size}&to={last.size}", "key1")
            assert (status, said["from"], said["to"]) == (200, first.size, last.size)
            assert base64.b64decode(said["from_root"]) == first.root
            proof = [base64.b64decode(item) for item in said["proof"]]
            assert is_consistent(first.size, first.root, last.size, last.root, proof)
        assert (await audit.get(f"/v1/consistency?from={seen[0].size}"))[1]["to"] == seen[-1].size
        for wrong in ("", "?from=x", f"?from=2&to={seen[-1].size + 1}", "?from=3&to=2", "?form=1"):
            assert (await audit.get(f"/v1/consistency{wrong}"))[0] == 400


async def test_tiles_show_an_examiner_the_whole_log_and_nobody_else(tmp_path: Path, tls_dir: Path) -> None:
    async with running_audit(tmp_path, tls_dir) as audit:
        for number in range(60):
            await audit.run(f"run_{number}")
        size = int((await audit.get("/checkpoint", "examiner"))[1].split(b"\n")[1])
        assert size > 256
        status, tile = await audit.get("/tile/0/000", "examiner")
        assert (status, len(tile)) == (200, 256 * 32)
        status, bundle = await audit.get("/tile/entries/000", "examiner")
        leaves = []
        while bundle:
            length = int.from_bytes(bundle[:2])
            leaves.append(bundle[2 : 2 + length])
            bundle = bundle[2 + length :]
        assert b"".join(leaf_hash(leaf) for leaf in leaves) == tile
        assert json.loads(leaves[0])["type"] == "opened"
        rest = size - 256
        status, part = await audit.get(f"/tile/0/001.p/{rest}", "examiner")
        assert (status, len(part)) == (200, rest * 32)
        assert (await audit.get("/tile/1/000.p/1", "examiner"))[0] == 200
        for key in ("key1", "auditor", "key3"):
            status, body = await audit.get("/tile/entries/000", key)
            assert (status, "examiner" in body["error"]["message"]) == (403, True)
            assert (await audit.get("/tile/0/000", key))[0] == 403
        assert (await audit.get("/tile/0/000", ""))[0] == 401


NO_TILES = (
    "0/001", "0/000.p/0", "0/000.p/256", "0/000.p/07", "0/1", "0/x000/000", "00/000", "8/000", "x/000",
    "0/000.p/9", "entries/000.p/9", "entries/x", "0/x001/x234/067", "0/" + "x999/" * 9 + "999",
)  # fmt: skip


async def test_a_tile_that_is_not_there_or_not_so_written_is_not_found(tmp_path: Path, tls_dir: Path) -> None:
    async with running_audit(tmp_path, tls_dir) as audit:
        await audit.run("run_1")
        for path in NO_TILES:
            assert (await audit.get(f"/tile/{path}", "examiner"))[0] == 404, path
        assert (await audit.get("/tile/0/000.p/5", "examiner"))[0] == 200
