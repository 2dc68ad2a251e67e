"""Reads the log over HTTP, with the same API key that asks questions."""

import re
from collections.abc import AsyncGenerator, Mapping, Sequence
from http import HTTPStatus
from pathlib import Path
from typing import Any

import aiohttp

from podium_cli.failures import KEY_HINT, CliError
from podium_cli.words import plain, plain_facts

LAST = "last"
"""What stands for the newest run wherever a run's id may stand."""

RUN_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:-]{0,127}")
_TOTAL_S = 60.0
_CONNECT_S = 5.0
_CHUNK_BYTES = 1 << 16
_HINTS: Mapping[int, str] = {
    HTTPStatus.UNAUTHORIZED: KEY_HINT,
    HTTPStatus.NOT_FOUND: "`podium runs` lists those that this key may see; `last` stands for the newest",
}


class AuditClient:
    """Speaks to one audit service with one API key."""

    def __init__(self, url: str, key: str) -> None:
        self._url = url.rstrip("/")
        self._key = key

    async def runs(
        self, limit: int, before: str | None = None, filters: Mapping[str, str] | None = None
    ) -> Mapping[str, Any]:
        """Return the newest runs this key may see that fit the filters, and how many fit in all."""
        query = {"limit": str(limit), **(filters or {})} | ({"before": before} if before else {})
        return plain_facts(await self._json("/v1/runs", query))

    async def run_file(
        self, kind: str, filters: Mapping[str, str], *, before: str | None
    ) -> AsyncGenerator[bytes, None]:
        """Yield a list of runs as a jsonl, csv or parquet file; its rest after the run `before` if given."""
        query = dict(filters)
        if before is not None:
            query |= {"before": before, "header": "false"}
        async with self._session() as session:
            response = await self._get(session, f"/v1/runs.{kind}", query)
            try:
                async for chunk in response.content.iter_chunked(_CHUNK_BYTES):
                    yield chunk
            except aiohttp.ClientError:
                raise self._unreachable("broke off") from None

    async def run(self, run_id: str, approval_id: str = "") -> Mapping[str, Any]:
        """Return one run: records, the content this key may see, receipt. The read is recorded.

        The content is as it was stored: whoever shows it must make it plain.
        """
        page = await self._json(f"/v1/runs/{run_id}", {"approval": approval_id} if approval_id else {})
        return {**plain_facts(dict(page)), "contents": page.get("contents") or []}

    async def page(self, path: str, query: Mapping[str, str] | None = None) -> Mapping[str, Any]:
        """Return one of audit's pages, made plain."""
        return plain_facts(await self._json(path, query))

    async def send(self, path: str, body: Mapping[str, Any]) -> Mapping[str, Any]:
        """Ask audit to do something and return its answer, made plain."""
        async with self._session() as session:
            try:
                response = await session.post(f"{self._url}{path}", json=body)
            except (aiohttp.ClientError, TimeoutError) as error:
                raise self._unreachable(type(error).__name__) from None
            return plain_facts(await (await self._checked(response)).json())

    async def resolve(self, run: str) -> str:
        """Return a run's id as given, or the newest run's for `last`."""
        if run == LAST:
            runs = (await self.runs(1)).get("runs") or ()
            if not runs:
                raise CliError(
                    "the log holds no run yet", hint='ask something: podium ask "What is 17 * 23?"'
                )
            run = str(runs[0].get("run_id"))
        if not RUN_ID.fullmatch(run):  # it becomes part of an address and of a file's name
            raise CliError("this is no id of a run", hint="`podium runs` lists those there are")
        return run

    async def vkey(self) -> str:
        """Return the log's public key."""
        async with self._session() as session:
            response = await self._get(session, "/v1/vkey", {})
            return plain((await response.text()).strip())

    async def export(self, run_id: str, file: Path, since: str = "") -> None:
        """Write a run's export to `file`, for its owner only, all of it or nothing; that is recorded.

        With `since` it says how the log continues one of that size.
        """
        query = [("since", since)] if since else []
        await self.download(f"/v1/runs/{run_id}/export", query, file)

    async def download(self, path: str, query: Sequence[tuple[str, str]], file: Path) -> None:
        """Write what a page gives to `file`, for its owner only, all of it or nothing."""
        draft = file.with_name(f".{file.name}.part")
        if not file.parent.is_dir():  # said before the reading, which leaves a record
            raise CliError(f"there is no directory {file.parent}", hint="make it, or name another file")
        async with self._session() as session:
            response = await self._get(session, path, query)
            try:
                draft.unlink(missing_ok=True)
                draft.touch(mode=0o600)
                with draft.open("wb") as out:
                    async for chunk in response.content.iter_chunked(_CHUNK_BYTES):
                        out.write(chunk)
                draft.replace(file)
            except aiohttp.ClientError:
                raise self._unreachable("broke off") from None
            except OSError as error:
                raise CliError(f"cannot write {file}: {error.strerror}", hint="name another file") from None
            finally:
                draft.unlink(missing_ok=True)

    async def _json(self, path: str, query: Mapping[str, str] | None = None) -> Mapping[str, Any]:
        async with self._session() as session:
            response = await self._get(session, path, query or {})
            body = await response.json()
        if not isinstance(body, dict):
            raise CliError("audit answered with something that is not an object")
        return body

    def _session(self) -> aiohttp.ClientSession:
        return aiohttp.ClientSession(
            timeout=aiohttp.ClientTimeout(total=_TOTAL_S, connect=_CONNECT_S),
            headers={"authorization": f"Bearer {self._key}"},
        )

    async def _get(
        self,
        session: aiohttp.ClientSession,
        path: str,
        query: Mapping[str, str] | Sequence[tuple[str, str]],
    ) -> aiohttp.ClientResponse:
        try:
            response = await session.get(f"{self._url}{path}", params=query)
        except (aiohttp.ClientError, TimeoutError) as error:
            raise self._unreachable(type(error).__name__) from None
        return await self._checked(response)

    async def _checked(self, response: aiohttp.ClientResponse) -> aiohttp.ClientResponse:
        """Return an answer that is good; raise CliError with what a refusal says."""
        if response.ok:
            return response
        try:
            body = await response.json()
        except (aiohttp.ClientError, TimeoutError, ValueError) as error:
            raise self._unreachable(type(error).__name__) from None
        error_fields = body.get("error") if isinstance(body, dict) else None
        said = error_fields.get("message") if isinstance(error_fields, dict) else None
        raise CliError(
            f"audit answered {response.status}: {said or 'no reason given'}",
            hint=_HINTS.get(response.status, ""),
        )

    def _unreachable(self, why: str) -> CliError:
        return CliError(
            f"audit at {self._url} cannot be reached ({why})",
            hint="is it running? `podium status` shows it, `podium up` starts it",
        )
