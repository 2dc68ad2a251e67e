import pytest

from tests.chart.rendering import TOOLS, Chart


def _chart(helm: str) -> Chart:
    if not TOOLS.is_dir():
        pytest.skip("needs the tools of `make chart`: PODIUM_TEST_K8S_TOOLS")
    return Chart(TOOLS / "bin" / helm)


@pytest.fixture(scope="session")
def chart() -> Chart:
    """The chart under the newest Helm."""
    return _chart("helm4")


@pytest.fixture(scope="session", params=["helm3", "helm4"])
def each_helm(request: pytest.FixtureRequest) -> Chart:
    """The chart under each Helm that people have."""
    return _chart(request.param)
