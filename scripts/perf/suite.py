"""Which tests a command line runs, in an order in which no test spoils the truth of a later one."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Callable, Iterator

import pyarrow as pa
import pyarrow.flight as flight

from .client import Servers, Skipped, drop, error_text, is_unimplemented
from .data import Spec
from .lifecycle import check_cluster, test_delete, test_graph, test_snapshot
from .load import test_load
from .result import Result, failed, skipped
from .run import Run
from .search import test_by_id, test_complex_filter, test_filtered, test_hybrid, test_search
from .throughput import test_get, test_index, test_put

SUITE_ROWS = (3_000, 5_000, 9_000, 15_000, 25_000, 50_000)


def spec_of(args: Namespace, rows: int) -> Spec:
    """The data that the flags describe."""
    text = args.text_field if args.with_text else None
    return Spec(rows, args.dim, args.dtype, args.metric, text, args.seed)


def guarded(name: str, test: Callable[[], Result]) -> Result:
    """Runs a test; what the server does not offer is skipped, what fails is an error, neither ends the run."""
    try:
        return test()
    except Skipped as why:
        return skipped(name, str(why))
    except (pa.ArrowException, flight.FlightError) as error:
        if is_unimplemented(error):
            return skipped(name, error_text(error))
        return failed(name, error_text(error))


def run_all(servers: Servers, args: Namespace) -> Iterator[Result]:
    """The results of the tests that the flags name, as they come."""
    if args.check_cluster:
        result = check_cluster(servers)
        yield result
        if result.errors:
            return
    if args.run_suite:
        yield from run_sizes(servers, args)
        return
    run = Run(servers, args, spec_of(args, args.rows), args.name)
    ok = True
    for result in _transfer(run):
        ok = ok and not (result.name == "put" and (result.errors or result.skipped))
        yield result
    if not ok:
        return
    for name, test in _after(run):
        yield guarded(name, test)
    if args.concurrent:
        yield from test_load(run, args.concurrent, args.duration)


def _transfer(run: Run) -> Iterator[Result]:
    args = run.args
    if not args.skip_put:
        result = guarded("put", lambda: test_put(run))
        yield result
        if result.errors or result.skipped:
            return
    searches = args.search or args.hybrid or args.test_id_search or args.filter
    if args.no_wait:
        print("index: not waited for (--no-wait)")
    elif searches and not args.skip_search:
        yield guarded("index", lambda: test_index(run))
    if not args.skip_get:
        yield guarded("get", lambda: test_get(run))


def _after(run: Run) -> Iterator[tuple[str, Callable[[], Result]]]:
    args = run.args
    if args.search:
        yield "search", lambda: test_search(run)
    if not args.skip_search and (args.filter or args.all):
        yield "search_filtered", lambda: test_filtered(run)
    if args.all and not args.skip_search:
        yield "search_nested_filter", lambda: test_complex_filter(run)
    if args.test_id_search:
        yield "id_search", lambda: test_by_id(run)
    if args.hybrid:
        yield "hybrid", lambda: test_hybrid(run)
    if args.all:
        yield "graph", lambda: test_graph(run)
        yield "snapshot", lambda: test_snapshot(run)
    if args.test_delete:
        yield "delete", lambda: test_delete(run)


def run_sizes(servers: Servers, args: Namespace) -> Iterator[Result]:
    """Put, index, get and search at growing sizes, each in a dataset of its own that is deleted afterwards."""
    lines = [
        "| Rows | DoPut MB/s | DoGet MB/s | QPS | p50 ms | p95 ms | recall |",
        "|---|---|---|---|---|---|---|",
    ]
    for rows in SUITE_ROWS:
        name = f"{args.name}_{rows}"
        drop_quietly(servers, name)
        run = Run(servers, args, spec_of(args, rows), name)
        found: dict[str, Result] = {}
        for kind, test in (
            ("put", lambda r=run: test_put(r)),
            ("index", lambda r=run: test_index(r)),
            ("get", lambda r=run: test_get(r)),
            ("search", lambda r=run: test_search(r)),
        ):
            result = guarded(kind, test)
            result.extra = {"dataset": name, "dataset_rows": rows, **result.extra}
            found[kind] = result
            yield result
        lines.append(_row(rows, found))
        drop_quietly(servers, name)
    print("\n".join(lines))


def _row(rows: int, found: dict[str, Result]) -> str:
    search = found["search"]
    cells = [
        f"{rows:,}",
        f"{found['put'].throughput:.1f}",
        f"{found['get'].throughput:.1f}",
        f"{search.throughput:.0f}",
        str(search.percentile(50)),
        str(search.percentile(95)),
        str(search.extra.get("recall")),
    ]
    return "| " + " | ".join(cells) + " |"


def drop_quietly(servers: Servers, dataset: str) -> None:
    """Deletes a dataset of the suite; a server that cannot keeps it."""
    try:
        drop(servers, dataset)
    except Skipped as why:
        print(f"{dataset} stays: {why}")
