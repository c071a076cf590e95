"""Results, skips and exit codes, against a bare Flight server that offers no more than put and get."""

import json
import threading

import pytest
from bare_server import BareServer
from pairs import alternate
from perf_test import main


@pytest.fixture
def uri():
    server = BareServer()
    thread = threading.Thread(target=server.serve, daemon=True)
    thread.start()
    yield f"grpc://127.0.0.1:{server.port}"
    server.shutdown()
    thread.join()


def test_a_failing_test_gives_exit_code_one_and_is_in_the_json(uri, tmp_path):
    file = tmp_path / "results.json"
    code = main(["--data-uri", "grpc://127.0.0.1:1", "--meta-uri", uri, "--rows", "10", "--json", str(file)])
    (result,) = json.loads(file.read_text())
    assert code == 1
    assert result["name"] == "put" and result["errors"] == 1 and result["first_error"]


def test_what_the_server_lacks_is_skipped_and_what_it_has_runs(uri, tmp_path, capsys):
    file = tmp_path / "results.json"
    flags = ["--rows", "2500", "--dim", "8", "--test-id-search", "--queries", "5"]
    code = main(["--data-uri", uri, "--meta-uri", uri, *flags, "--json", str(file)])
    results = {result["name"]: result for result in json.loads(file.read_text())}
    assert code == 0
    assert results["get"]["rows"] == results["put"]["rows"] == 2500
    assert results["get"]["throughput"] > 0 and results["get"]["bytes_processed"] > 2500 * 8 * 4
    assert "check_readiness" in results["index"]["skipped"]
    assert "VectorSearchByID" in results["id_search"]["skipped"]
    assert "2 tests ran, 2 skipped, 0 errors" in capsys.readouterr().out


def test_nothing_that_ran_is_a_failure(uri):
    code = main(["--data-uri", uri, "--meta-uri", uri, "--skip-put", "--skip-get", "--no-wait"])
    assert code == 1


def test_the_bare_server_gives_back_what_was_put(uri):
    import vectors
    from perf.client import Servers, dataset_ticket, get, put

    data = vectors.batches(vectors.gaussian(250, seed=1), batch_rows=100)
    with Servers(uri, uri) as servers:
        acks = put(servers.data, "some", vectors.schema(), data)
        table = get(servers.data, dataset_ticket("some"))
    assert [ack["rows"] for ack in acks] == [100, 100, 50]
    assert table.to_batches() == data


def test_ratios_are_pair_by_pair_and_sides_take_turns():
    order = []

    def side(name, values):
        return lambda number: order.append(name) or values[number]

    pairs = alternate(3, side("a", [2.0, 30.0, 4.0]), side("b", [1.0, 10.0, 4.0]), ("a", "b"), "MB/s")
    summary = pairs.summary()
    assert order == ["a", "b", "b", "a", "a", "b"]
    assert summary["ratio"] == 2.0 and summary["ratio_range"] == [1.0, 3.0]
    assert (summary["a"], summary["b"]) == (4.0, 4.0)
