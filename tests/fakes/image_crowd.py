"""Clients in a process of their own: ten post an image of 10 MB each, one asks meanwhile for /healthz.

Run as `python -m tests.fakes.image_crowd PORT KEY`. Prints JSON: the posts' statuses, and how many
health checks were answered while any of them was in flight.
"""

import http.client
import json
import sys
import threading
import time

_CLIENTS = 10
_IMAGE_BYTES = 10_000_000
_PAUSE_S = 0.005
_TIMEOUT_S = 60.0


def _body() -> bytes:
    url = "data:image/png;base64," + "iVBORw0K" * (_IMAGE_BYTES // 8)
    content = [{"type": "text", "text": "what is this?"}, {"type": "image_url", "image_url": {"url": url}}]
    return json.dumps({"model": "worker/w", "messages": [{"role": "user", "content": content}]}).encode()


def _post(port: int, key: str, body: bytes, statuses: list[int]) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=_TIMEOUT_S)
    headers = {"Authorization": f"Bearer {key}", "Content-Type": "application/json"}
    connection.request("POST", "/v1/chat/completions", body, headers)
    response = connection.getresponse()
    response.read()
    statuses.append(response.status)


def _crowd(port: int, key: str) -> dict[str, object]:
    body = _body()
    statuses: list[int] = []
    threads = [threading.Thread(target=_post, args=(port, key, body, statuses)) for _ in range(_CLIENTS)]
    answers = 0
    health = http.client.HTTPConnection("127.0.0.1", port, timeout=_TIMEOUT_S)
    for thread in threads:
        thread.start()
    while any(thread.is_alive() for thread in threads):
        health.request("GET", "/healthz")
        health.getresponse().read()
        answers += 1
        time.sleep(_PAUSE_S)
    return {"statuses": list(statuses), "answers": answers}


if __name__ == "__main__":
    json.dump(_crowd(int(sys.argv[1]), sys.argv[2]), sys.stdout)
