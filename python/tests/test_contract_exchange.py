"""DoExchange as the contract says, with pyarrow alone."""

import json

import pyarrow as pa
import pyarrow.flight as flight
import pytest
from server import Server
from wire import Wire, refused, rows

COMMAND = flight.FlightDescriptor.for_command
PATH = flight.FlightDescriptor.for_path


@pytest.fixture(scope="module")
def fifty(wire) -> str:
    wire.put("exchange_fifty", rows(50))
    return "exchange_fifty"


def queries(dataset: str, numbers: list, k: int = 1, **columns: pa.Array) -> pa.RecordBatch:
    lists = pa.array([[float(n), 1.0] for n in numbers], pa.list_(pa.float32()))
    count = len(numbers)
    return pa.record_batch(
        {
            "dataset": pa.array([dataset] * count),
            "k": pa.array([k] * count, pa.int32()),
            "query_vector": lists,
            **columns,
        }
    )


def exchange(wire, descriptor, *batches) -> list:
    """Writes batches, reads everything back: (data or None, metadata or None)."""
    writer, reader = wire.data.do_exchange(descriptor)
    with writer:
        writer.begin(batches[0].schema)
        for batch in batches:
            writer.write_batch(batch)
        writer.done_writing()
        return [(chunk.data, chunk.app_metadata) for chunk in reader]


def joined(answers: list) -> pa.Table:
    return pa.Table.from_batches([data for data, _ in answers if data is not None])


def test_each_row_is_a_query_and_answers_stream_back(wire, fifty) -> None:
    answers = exchange(
        wire, COMMAND(b"VectorSearch"), queries(fifty, [3, 5], 2), queries(fifty, [7], 2)
    )
    table = joined(answers)
    assert table.schema.names == ["query_index", "id", "score", "distance"]
    assert table["query_index"].to_pylist() == [0, 0, 1, 1, 2, 2]
    assert table["id"].to_pylist()[::2] == [3, 5, 7]


def test_each_answer_says_how_far_it_has_come(wire, fifty) -> None:
    # 600 queries in one message are answered by two.
    batches = [queries(fifty, [n % 50 for n in range(600)], 2), queries(fifty, [7], 2)]
    told = [
        json.loads(metadata.to_pybytes())
        for _, metadata in exchange(wire, COMMAND(b"VectorSearch"), *batches)
    ]
    far = [(one["queries_done"], one["queries_asked"]) for one in told]
    assert far == [(512, 600), (600, 600), (601, 601)]
    assert [one["query"]["returned"] for one in told] == [1024, 176, 2]


def test_ef_is_optional_and_accepted(wire, fifty) -> None:
    batch = queries(fifty, [3, 5], 1, ef=pa.array([50, 100], pa.int32()))
    assert joined(exchange(wire, COMMAND(b"VectorSearch"), batch))["id"].to_pylist() == [3, 5]


def test_an_answer_comes_before_the_next_question(wire, fifty) -> None:
    writer, reader = wire.data.do_exchange(COMMAND(b"VectorSearch"))
    with writer:
        writer.begin(queries(fifty, [0]).schema)
        for n in (4, 8, 15):
            writer.write_batch(queries(fifty, [n]))
            assert reader.read_chunk().data["id"].to_pylist() == [n]
        writer.done_writing()
        assert list(reader) == []


WRONG = [
    (lambda name: queries("nowhere", [1]), pa.ArrowKeyError, "nowhere"),
    (lambda name: queries(name, [1], 0), pa.ArrowInvalid, "bad_k"),
    (lambda name: queries(name, [1]).select(["dataset", "k"]), pa.ArrowInvalid, "query_vector"),
    (lambda name: queries(name, [1]).select(["k", "query_vector"]), pa.ArrowInvalid, "dataset"),
]


@pytest.mark.parametrize("make, kind, word", WRONG)
def test_questions_that_are_wrong_say_how(wire, fifty, make, kind, word) -> None:
    with refused(kind, word):
        exchange(wire, COMMAND(b"VectorSearch"), make(fifty))


def test_an_ingest_is_acknowledged_batch_by_batch(wire, dataset) -> None:
    writer, reader = wire.data.do_exchange(PATH("ingest", dataset))
    with writer:
        writer.begin(rows(1).schema)
        told = []
        for n in range(3):
            writer.write_batch(rows(5, n * 5))
            told.append(json.loads(reader.read_chunk().app_metadata.to_pybytes()))
            assert wire.get(dataset).num_rows == (n + 1) * 5
        writer.done_writing()
    assert [one["rows"] for one in told] == [5, 5, 5]
    first = told[0]["batch_id"]
    assert [one["batch_id"] for one in told] == [first, first + 1, first + 2]
    for one in told:
        assert one["status"] == "acked"
        assert {"offset", "durable", "replicated", "searchable"} <= set(one)


def test_a_bad_batch_of_an_ingest_is_refused(wire, dataset) -> None:
    bad = rows(2).set_column(0, "id", pa.array([1, None], pa.int64()))
    with refused(pa.ArrowInvalid, "null_value"):
        exchange(wire, PATH("ingest", dataset), rows(2), bad)


PROBES = [COMMAND(b"ping"), PATH("probe"), PATH("a", "b", "c")]


@pytest.mark.parametrize("descriptor", PROBES, ids=str)
def test_anything_else_is_a_probe_and_every_message_is_answered(wire, descriptor) -> None:
    # The answer is the bare word "ack", without a header or metadata. pyarrow
    # takes it off the stream and says that there is nothing in it; were there
    # no answer it would wait, until the timeout makes an error of that.
    writer, reader = wire.data.do_exchange(descriptor, flight.FlightCallOptions(timeout=20))

    def answered() -> None:
        with pytest.raises(StopIteration):
            reader.read_chunk()

    with writer:
        answered()  # pyarrow sends the descriptor as a message of its own.
        writer.begin(rows(1).schema)
        answered()
        for _ in range(3):
            writer.write_batch(rows(1))
            answered()
        writer.done_writing()


@pytest.fixture(scope="module")
def alone(tmp_path_factory):
    """A server whose log holds one dataset: created, two puts, one delete."""
    running = Server(tmp_path_factory.mktemp("sync") / "data")
    wire = Wire(running.data, running.meta)
    wire.put("d", rows(3), rows(2, 3))
    wire.act("delete", {"dataset": "d", "id": 1})
    yield wire
    running.kill()


def changes(wire, request: bytes = b"") -> list:
    writer, reader = wire.data.do_exchange(COMMAND(b"sync"))
    with writer:
        if request:
            writer.write_metadata(request)
        writer.done_writing()
        return [(chunk.data, json.loads(chunk.app_metadata.to_pybytes())) for chunk in reader]


def test_the_log_can_be_followed_entry_by_entry(alone) -> None:
    told = changes(alone)
    sequences = [about["sequence"] for _, about in told]
    assert sequences == sorted(set(sequences))
    assert all(about["timestamp"] > 0 for _, about in told)
    puts = [data["id"].to_pylist() for data, _ in told if data is not None]
    assert puts == [[0, 1, 2], [3, 4]]


def test_the_log_can_be_followed_from_a_sequence_number(alone) -> None:
    second = changes(alone)[1][1]["sequence"]
    told = changes(alone, json.dumps({"from": second}).encode())
    assert [about["sequence"] for _, about in told][0] == second


def test_an_exchange_on_the_meta_server_says_where_to_go(wire, fifty) -> None:
    with refused(pa.ArrowNotImplementedError, "data"):
        writer, reader = wire.meta.do_exchange(COMMAND(b"VectorSearch"))
        with writer:
            writer.begin(queries(fifty, [1]).schema)
            writer.done_writing()
            list(reader)
