"""The scripts for operators, against a real server."""

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from server import Server

SCRIPTS = Path(__file__).resolve().parents[1]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    started = Server(tmp_path_factory.mktemp("operations") / "data")
    try:
        yield started
    finally:
        started.kill()


def run(*command: str | Path) -> str:
    """What a command prints; it must succeed."""
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def script(name: str, server: Server, *arguments: str) -> str:
    addresses = ["--data-uri", server.uri, "--meta-uri", server.meta_uri]
    return run(sys.executable, SCRIPTS / name, *addresses, *arguments)


def test_a_server_passes_the_functional_checks(server: Server) -> None:
    told = script("ops_test.py", server, "validate", "--dim", "16")
    assert "FAIL" not in told and "PASS" in told, told


def test_operations_go_from_a_put_to_a_deletion(server: Server) -> None:
    script("ops_test.py", server, "put", "--dataset", "d", "--rows", "300", "--dim", "8")
    listed = json.loads(script("ops_test.py", server, "--json", "list"))
    assert [(one["name"], one["rows"]) for one in listed if one["name"] == "d"] == [("d", 300)]
    found = script("ops_test.py", server, "search", "--dataset", "d", "--k", "3", "--vector", str([0.5] * 8))
    assert "distance" in found, found
    for command in ("status", "snapshot", "namespaces"):
        script("ops_test.py", server, command)
    script("ops_test.py", server, "info", "--dataset", "d")


def test_a_server_that_worked_has_the_metrics_of_dashboards(server: Server) -> None:
    small = ("--rows", "2000", "--dim", "16", "--query-count", "20", "--search", "--fresh")
    script("perf_test.py", server, *small)
    checked = run("bash", SCRIPTS / "validate_metrics.sh", f"http://{server.http}/metrics")
    assert "0 failed" in checked, checked
