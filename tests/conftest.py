"""What all tests share: the marks, Hypothesis without a clock, a real ssh server."""

import os
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, settings

from tests.real.sshd import Server, running_sshd

# No deadline, and examples may be slow to make: a busy machine is no error. In CI the same examples
# each time: what fails there can be seen to fail elsewhere.
settings.register_profile(
    "cas", deadline=None, print_blob=True, suppress_health_check=[HealthCheck.too_slow]
)
settings.register_profile("ci", settings.get_profile("cas"), derandomize=True)
settings.load_profile("ci" if os.environ.get("CI") else "cas")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skip what is marked root, where we are not."""
    if os.geteuid() == 0:
        return
    for item in items:
        if item.get_closest_marker("root"):
            item.add_marker(pytest.mark.skip(reason="needs root"))


@pytest.fixture(scope="module")
def sshd() -> Iterator[Server]:
    """A real OpenSSH server for the tests of one module; see tests/real/sshd.py."""
    with running_sshd() as server:
        yield server
