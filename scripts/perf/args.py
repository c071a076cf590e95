"""The command line of the load test."""

from __future__ import annotations

import argparse
from pathlib import Path

from .client import DEFAULT_DATA_URI, DEFAULT_META_URI
from .data import DTYPES
from .filters import parse as parse_filter

DEFAULT_DURATION = 60.0
DURATION_UNDER_ALL = 10.0
CLIENTS_UNDER_ALL = 4


def _positive(text: str) -> int:
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError(f"{text}: give a number of at least 1")
    return value


def _filter(text: str) -> dict:
    try:
        return parse_filter(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from error


def parser() -> argparse.ArgumentParser:
    """All flags; the second spelling of a flag is an alias."""
    out = argparse.ArgumentParser(
        prog="perf_test.py",
        description="Load test of a Longbow server over Arrow Flight, with pyarrow alone.",
        epilog="Without a test flag: put and get. Exit code 1 if a test that ran had errors.",
    )
    out.add_argument("--data-uri", default=DEFAULT_DATA_URI, help="data server (default %(default)s)")
    out.add_argument("--meta-uri", default=DEFAULT_META_URI, help="meta server (default %(default)s)")
    _data_flags(out.add_argument_group("data"))
    _test_flags(out.add_argument_group("tests"))
    _search_flags(out.add_argument_group("search"))
    out.add_argument("--json", type=Path, metavar="FILE", help="write the results to FILE as a JSON list")
    out.add_argument("--check-cluster", action="store_true", help="first verify that every member is alive")
    return out


def _data_flags(group: argparse._ArgumentGroup) -> None:
    group.add_argument("--rows", type=_positive, default=10_000, help="vectors (default %(default)s)")
    group.add_argument("--dim", type=_positive, default=128, help="dimensions (default %(default)s)")
    group.add_argument("--name", "--dataset", default="perf_test", help="dataset (default %(default)s)")
    group.add_argument("--dtype", choices=DTYPES, default="float32", help="type of the vectors")
    group.add_argument(
        "--metric",
        choices=("euclidean", "cosine", "dot_product"),
        default="euclidean",
        help="metric of the dataset (default %(default)s)",
    )
    group.add_argument("--with-text", action="store_true", help="add a text column (implied by --hybrid)")
    group.add_argument("--text-field", default="meta", help="name of the text column (default %(default)s)")
    group.add_argument("--seed", type=int, default=42, help="the same seed gives the same data")
    group.add_argument("--fresh", action="store_true", help="delete the dataset before the put")


def _test_flags(group: argparse._ArgumentGroup) -> None:
    group.add_argument("--all", action="store_true", help="run every test")
    group.add_argument("--search", action="store_true", help="vector search, with recall against numpy")
    group.add_argument("--hybrid", action="store_true", help="vector and text search")
    group.add_argument("--test-delete", action="store_true", help="delete rows; they must not come back")
    group.add_argument("--test-id-search", action="store_true", help="search by the id of a stored row")
    group.add_argument("--concurrent", type=int, default=0, metavar="N", help="N clients at once")
    group.add_argument(
        "--duration",
        type=float,
        default=None,
        help=f"seconds of concurrent load (default {DEFAULT_DURATION:.0f}; {DURATION_UNDER_ALL:.0f} with --all)",
    )
    group.add_argument("--operation", choices=("put", "get", "mixed", "search"), default="mixed")
    group.add_argument(
        "--run-suite", action="store_true", help="put, get and search at six sizes, as a table"
    )
    group.add_argument("--skip-put", action="store_true", help="test the dataset as it is on the server")
    group.add_argument("--skip-get", action="store_true")
    group.add_argument("--skip-search", action="store_true")
    group.add_argument("--no-wait", action="store_true", help="search without waiting for the index")
    group.add_argument("--index-timeout", type=float, default=600.0, metavar="SECONDS")


def _search_flags(group: argparse._ArgumentGroup) -> None:
    group.add_argument(
        "--search-k", "--k", type=_positive, default=10, help="neighbours (default %(default)s)"
    )
    group.add_argument(
        "--query-count", "--queries", type=_positive, default=1000, help="queries (default %(default)s)"
    )
    group.add_argument(
        "--ef", type=_positive, default=None, help="beam of the graph search (default: the server's)"
    )
    group.add_argument("--alpha", type=float, default=0.5, help="1 = vector only, 0 = text only")
    group.add_argument(
        "--filter",
        type=_filter,
        action="append",
        metavar="FIELD:OP:VALUE",
        help="only rows that pass, in get and search; may be repeated (generated: id, category 0-9, timestamp)",
    )
    group.add_argument(
        "--global",
        dest="all_nodes",
        action="store_true",
        help="ask every node of the cluster (local_only false)",
    )


def parse(argv: list[str] | None = None) -> argparse.Namespace:
    """Reads the command line and fills in what one flag implies for another."""
    args = parser().parse_args(argv)
    if args.all:
        args.search = args.hybrid = args.test_delete = args.test_id_search = args.check_cluster = True
        args.concurrent = args.concurrent or CLIENTS_UNDER_ALL
    if args.duration is None:
        args.duration = DURATION_UNDER_ALL if args.all else DEFAULT_DURATION
    args.with_text = args.with_text or args.hybrid
    if args.skip_search:
        args.search = args.hybrid = args.test_id_search = False
    return args
