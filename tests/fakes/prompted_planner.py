"""A provider on loopback whose model plans from the prompt alone, by reading the numbered pool."""

import asyncio
import json
import re
from typing import Any, Self

from aiohttp import web

_LISTED = re.compile(r"^Model id (\d+): (.*)$", re.MULTILINE)


class PromptedPlanner:
    """Answers planning prompts. `mistakes` makes so many unreadable replies first; while it `hangs` there is no
    reply, and `hung_up` is set once a caller leaves.

    The first round sends the question to the arithmetic specialist, then to the one for numerals. A later
    round revises once when `revises`, then accepts.
    """

    def __init__(self) -> None:
        self.mistakes = 0
        self.revises = False
        self.hangs = False
        self.hung_up = asyncio.Event()
        self.prompts: list[list[dict[str, str]]] = []
        self.base_url = ""
        self._runner: web.AppRunner | None = None

    async def __aenter__(self) -> Self:
        app = web.Application()
        app.router.add_post("/v1/chat/completions", self._complete)
        self._runner = web.AppRunner(app)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", 0)
        await site.start()
        port = self._runner.addresses[0][1]
        self.base_url = f"http://127.0.0.1:{port}/v1"
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._runner is not None:
            await self._runner.cleanup()

    async def _complete(self, request: web.Request) -> web.Response:
        body: dict[str, Any] = await request.json()
        messages: list[dict[str, str]] = body["messages"]
        self.prompts.append(messages)
        while self.hangs:
            if request.transport is None or request.transport.is_closing():
                self.hung_up.set()
                break
            await asyncio.sleep(0.01)
        text = self._plan(messages)
        return web.json_response(
            {
                "id": "plan-1",
                "object": "chat.completion",
                "model": body["model"],
                "choices": [
                    {
                        "index": 0,
                        "message": {"role": "assistant", "content": text},
                        "finish_reason": "stop",
                    }
                ],
                "usage": {"prompt_tokens": 1_000, "completion_tokens": 50, "total_tokens": 1_050},
            }
        )

    def _plan(self, messages: list[dict[str, str]]) -> str:
        if self.mistakes > 0:
            self.mistakes -= 1
            return "I think somebody should calculate."
        mine = messages[1]["content"].rsplit("# Your turn", 1)[1]
        sums, numerals = _best(mine, "arithmetic"), _best(mine, "numerals")
        if "last workflow and its answer" not in mine:
            return _lists([sums, numerals], ["Multiply 17 by 23.", "Write it as a Roman numeral."], [[], [0]])
        if self.revises:
            self.revises = False
            return _lists([sums], ["Add 1 and 1."], [[]])
        return "It stands.\n" + _lists([], [], [])


def _best(prompt: str, skill: str) -> int:
    """Return the number of the model whose card names the highest accuracy for `skill`."""
    accuracy = re.compile(rf"\b{skill} (\d+)")
    found = [(accuracy.search(card), int(number)) for number, card in _LISTED.findall(prompt)]
    return max((int(match[1]), number) for match, number in found if match)[1]


def _lists(models: list[int], subtasks: list[str], access: list[list[int]]) -> str:
    texts = json.dumps(subtasks)
    return f"model_id = {json.dumps(models)}\nsubtasks = {texts}\naccess_list = {json.dumps(access)}"
