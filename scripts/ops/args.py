"""The command line of the operations script."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from perf.client import DEFAULT_DATA_URI, DEFAULT_META_URI
from perf.filters import parse as parse_filter


def _filter(text: str) -> dict:
    try:
        return parse_filter(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from error


def _vector(text: str) -> list[float]:
    try:
        value = json.loads(text)
    except json.JSONDecodeError as error:
        raise argparse.ArgumentTypeError(
            f"--vector {text!r}: write a JSON list of numbers ({error})"
        ) from error
    if not isinstance(value, list) or not all(isinstance(x, (int, float)) for x in value):
        raise argparse.ArgumentTypeError(f"--vector {text!r}: write a JSON list of numbers")
    return value


def _row_id(text: str) -> int | str:
    return int(text) if text.lstrip("-").isdigit() else text


def _common(default: bool) -> argparse.ArgumentParser:
    """The flags that may stand before or after the subcommand; the later place must not reset the earlier."""
    out = argparse.ArgumentParser(add_help=False)

    def value(text: str | bool) -> str | bool:
        return text if default else argparse.SUPPRESS

    out.add_argument("--data-uri", default=value(DEFAULT_DATA_URI), help=f"data server ({DEFAULT_DATA_URI})")
    out.add_argument("--meta-uri", default=value(DEFAULT_META_URI), help=f"meta server ({DEFAULT_META_URI})")
    out.add_argument("--json", action="store_true", default=value(False), help="print JSON")
    return out


def parser() -> argparse.ArgumentParser:
    """The subcommands with their flags."""
    out = argparse.ArgumentParser(
        prog="ops_test.py",
        description="Operates and validates a Longbow server over Arrow Flight, with pyarrow alone.",
        parents=[_common(True)],
    )
    commands = out.add_subparsers(dest="command", required=True, metavar="COMMAND")

    def command(name: str, text: str, dataset: bool = True) -> argparse.ArgumentParser:
        sub = commands.add_parser(name, help=text, description=text, parents=[_common(False)])
        if dataset:
            sub.add_argument("--dataset", "--name", required=True)
        return sub

    _rows(command)
    _searches(command)
    command("list", "the datasets with their rows and bytes", dataset=False)
    command("info", "schema, rows, bytes and endpoints of a dataset")
    command("status", "members of the cluster and readiness", dataset=False).add_argument(
        "--dataset", "--name"
    )
    command("snapshot", "force a snapshot", dataset=False).add_argument("--dataset", "--name")
    exchange = command("exchange", "probe DoExchange on the data server", dataset=False)
    exchange.add_argument("--messages", type=int, default=1, help="messages to send (default %(default)s)")
    namespaces = command("namespaces", "list, create or delete namespaces", dataset=False)
    namespaces.add_argument("--create", metavar="NAME")
    namespaces.add_argument("--delete", metavar="NAME")
    validate = command("validate", "functional checks in a dataset of their own", dataset=False)
    validate.add_argument("--dim", type=int, default=32, help="dimensions (default %(default)s)")
    validate.add_argument("--keep", action="store_true", help="leave the dataset on the server")
    return out


def _rows(command) -> None:
    put = command("put", "upload a Parquet or Arrow file, or generated vectors")
    put.add_argument(
        "--file", type=Path, help="Parquet (.parquet) or Arrow IPC (.arrow, .feather) with an id column"
    )
    put.add_argument("--rows", type=int, default=100, help="generated rows (default %(default)s)")
    put.add_argument("--dim", type=int, default=128, help="generated dimensions (default %(default)s)")
    put.add_argument("--with-text", action="store_true", help="add a text column `meta`")
    get = command("get", "download rows")
    get.add_argument("--limit", type=int)
    get.add_argument("--offset", type=int)
    get.add_argument("--columns", type=lambda text: text.split(","), metavar="A,B")
    get.add_argument("--filter", type=_filter, action="append", metavar="FIELD:OP:VALUE")
    get.add_argument("--where", help="SQL predicate")
    get.add_argument("--out", type=Path, metavar="FILE", help="write a Parquet file instead of printing rows")
    delete = command("delete", "delete rows, or the whole dataset")
    what = delete.add_mutually_exclusive_group(required=True)
    what.add_argument("--id", type=_row_id, action="append", help="may be repeated")
    what.add_argument("--filter", type=_filter, action="append", metavar="FIELD:OP:VALUE")
    what.add_argument("--where", help="SQL predicate")
    what.add_argument("--all", action="store_true", help="the dataset itself, with everything in it")


def _searches(command) -> None:
    search = command("search", "nearest neighbours of a vector")
    search.add_argument("--vector", type=_vector, help="a JSON list; without it, a stored row is asked for")
    search.add_argument("--k", type=int, default=10)
    search.add_argument("--ef", type=int)
    search.add_argument("--exact", action="store_true", default=None, help="scan instead of the index")
    search.add_argument("--filter", type=_filter, action="append", metavar="FIELD:OP:VALUE")
    search.add_argument("--where", help="SQL predicate")
    search.add_argument("--text", help="text query, fused with the vector")
    search.add_argument("--alpha", type=float)
    search.add_argument("--columns", type=lambda text: text.split(","), metavar="A,B")
    similar = command("similar", "rows most like a stored row")
    similar.add_argument("--id", type=_row_id, required=True)
    similar.add_argument("--k", type=int, default=10)
