"""Errors in the OpenAI shape."""

from aiohttp import web


class ApiError(Exception):
    """A request the demo provider refuses: HTTP status plus the fields of an OpenAI error body."""

    def __init__(
        self,
        status: int,
        message: str,
        *,
        code: str | None = None,
        param: str | None = None,
        retry_after_s: float | None = None,
    ) -> None:
        super().__init__(message)
        self.status = status
        self.message = message
        self.code = code
        self.param = param
        self.retry_after_s = retry_after_s

    def response(self) -> web.Response:
        """Return the error as an HTTP response."""
        headers = {} if self.retry_after_s is None else {"Retry-After": f"{self.retry_after_s:g}"}
        body = {
            "error": {
                "message": self.message,
                "type": _TYPES.get(self.status, "server_error" if self.status >= _SERVER else _REQUEST),
                "param": self.param,
                "code": self.code,
            }
        }
        return web.json_response(body, status=self.status, headers=headers)


_REQUEST = "invalid_request_error"
_SERVER = 500
_TYPES = {401: "authentication_error", 403: "permission_error", 429: "rate_limit_error"}


def invalid(message: str, *, param: str | None = None, code: str | None = None) -> ApiError:
    """Return the error for a request body that must be changed."""
    return ApiError(400, message, param=param, code=code)
