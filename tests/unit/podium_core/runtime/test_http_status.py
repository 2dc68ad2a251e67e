"""Every code has its HTTP status, and it is an error."""

import pytest

from podium_core.domain.errors import Code
from podium_core.runtime.http_status import HTTP_STATUS_OF_CODE


@pytest.mark.parametrize("code", list(Code))
def test_every_code_has_an_error_status(code: Code) -> None:
    assert 400 <= HTTP_STATUS_OF_CODE[code] < 600
