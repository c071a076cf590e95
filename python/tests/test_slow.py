"""What takes long is logged, with what it did."""

import re

import numpy as np
from server import Server

import longbow


def test_slow_searches_and_statements_are_logged(tmp_path) -> None:
    path = tmp_path / "data"
    server = Server(path, "--slow-query", "1ms")
    try:
        client = longbow.connect(server.uri, server.meta_uri)
        vectors = np.random.default_rng(5).normal(size=(20_000, 64)).astype("float32")
        client.insert("d", {"id": range(20_000), "vector": vectors, "n": range(20_000)})
        queries = vectors[:300]
        client.search("d", queries, exact=True, filters=("n", "<", 15_000))
        client.sql("SELECT count(*) FROM d a JOIN d b ON a.n = b.n WHERE a.n % 3 = 0")
    finally:
        server.stop()
    log = (tmp_path / "data.log").read_text()
    log = re.sub(r"\x1b\[[0-9;]*m", "", log)
    search = next(line for line in log.splitlines() if "slow search" in line)
    for told in [
        "dataset",
        "took_us",
        "rows_passing",
        "15000 of 20000 rows pass",
        "exact_filtered",
    ]:
        assert told in search, (told, search)
    statement = log[log.index("slow statement") :]
    for told in ["JOIN d b", "HashJoinExec", "output_rows"]:
        assert told in statement, (told, statement)
