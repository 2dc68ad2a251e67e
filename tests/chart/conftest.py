import pytest

from tests.chart.rendering import TOOLS, Chart


@pytest.fixture(scope="session")
def chart() -> Chart:
    if not TOOLS.is_dir():
        pytest.skip("needs the tools of `make chart`: PODIUM_TEST_K8S_TOOLS")
    return Chart(TOOLS / "bin" / "helm4")
