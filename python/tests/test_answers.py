"""What the messages of one reply tell together."""

import json

import pyarrow as pa

import longbow
from longbow.answers import AnswerStream


class Reader:
    """Messages, each with the queries answered by then and its figures."""

    def __init__(self, told: list) -> None:
        self._told = iter(told)
        self.schema = pa.schema([("id", pa.int64())])

    def read_chunk(self):
        done, query = next(self._told)
        body = json.dumps({"queries_done": done, "queries_asked": done, "query": query})
        return Chunk(pa.record_batch([pa.array([1])], self.schema), pa.py_buffer(body.encode()))


class Chunk:
    def __init__(self, data: pa.RecordBatch, app_metadata: pa.Buffer) -> None:
        self.data, self.app_metadata = data, app_metadata


def told(*messages) -> longbow.QueryInfo:
    return longbow.query_info(AnswerStream(Reader(list(messages))).read_all())


def test_sums_are_added_and_means_are_weighted_by_the_queries() -> None:
    first = {"returned": 30, "ef": 100, "recall_target": 0.9, "recall_expected": 0.9}
    second = {"returned": 10, "ef": 200, "recall_target": 0.9, "recall_expected": 1.0}
    info = told((30, first), (40, second))
    assert info.returned == 40
    assert info.more["ef"] == 125 and info.more["recall_target"] == 0.9
    assert abs(info.more["recall_expected"] - 0.925) < 1e-9


def test_a_message_without_a_walk_has_no_part_in_the_mean_of_them() -> None:
    info = told((30, {"returned": 1, "ef": 100}), (60, {"returned": 1}))
    assert info.more["ef"] == 100


def test_what_is_expected_of_some_queries_is_not_told_of_all() -> None:
    info = told((30, {"returned": 1, "recall_expected": 0.9}), (60, {"returned": 1}))
    assert "recall_expected" not in info.more
