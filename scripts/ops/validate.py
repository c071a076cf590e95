"""`validate`: functional checks against a running server, in a dataset of their own.

Each check returns a detail to print, raises `Failed` with what is wrong, or `Skipped` with the server's
own words where the server does not offer it.
"""

from __future__ import annotations

import json
import os
import secrets
from argparse import Namespace
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.flight as flight
from perf.client import Servers, Skipped, drop, error_text, is_unimplemented
from perf.data import Mixture, Spec

from . import checks_read, checks_write
from .checks_read import Failed, Subject

ROWS = 100

# The order matters: later checks delete what earlier ones read.
CHECKS: tuple[tuple[str, Callable[[Subject], str]], ...] = (
    ("DoPut: Upload 100 vectors", checks_write.upload),
    ("DoGet: Download all", checks_read.download_all),
    ("DoGet: Download with filter", checks_read.download_filtered),
    ("GetSchema: Schema of the dataset", checks_read.schema),
    ("GetFlightInfo: Rows of the dataset", checks_read.flight_info),
    ("ListFlights: Dataset is listed", checks_read.listed),
    ("VectorSearch: Search", checks_read.search),
    ("VectorSearch: Search with filter", checks_read.search_filtered),
    ("VectorSearch: Nested filter", checks_read.search_nested),
    ("VectorSearch: Wrong dimension is refused", checks_read.wrong_dimension),
    ("VectorSearchByID: Similar rows", checks_read.by_id),
    ("HybridSearch: Vector and text", checks_read.hybrid),
    ("DoGet: Unknown dataset is NotFound", checks_read.unknown_dataset),
    ("DoGet: Unknown field is refused", checks_read.unknown_field),
    ("DoExchange: DataPort connectivity", checks_write.exchange_probe),
    ("DoExchange: VectorSearch of many queries", checks_read.exchange_search),
    ("DoExchange: Streaming ingest", checks_write.exchange_ingest),
    ("DoPut: An existing id is replaced", checks_write.replace),
    ("DoPut: Another dimension is refused", checks_write.refuse_dimension),
    ("Delete: Deleted rows never appear", checks_write.delete),
    ("Delete: Unknown id is NotFound", checks_write.delete_unknown),
    ("Readiness: Index catches up", checks_read.ready),
    ("Status: Cluster members are alive", checks_read.cluster),
    ("Namespaces: Create, list, delete", checks_write.namespaces),
    ("Graph: Add an edge and traverse", checks_write.graph),
    ("Snapshot: Force a snapshot", checks_write.snapshot),
    ("Delete: Delete the dataset", checks_write.delete_dataset),
)


@dataclass
class Outcome:
    """How a check ended: PASS, FAIL or SKIPPED, with a detail."""

    check: str
    status: str
    detail: str

    def line(self) -> str:
        """As printed."""
        return f"{self.check} - {self.status}" + (f" ({self.detail})" if self.detail else "")


def run_check(name: str, check: Callable[[Subject], str], subject: Subject) -> Outcome:
    """Runs one check; any refusal or error of the server that the check did not expect is a failure."""
    try:
        return Outcome(name, "PASS", check(subject))
    except Skipped as why:
        return Outcome(name, "SKIPPED", str(why))
    except Failed as why:
        return Outcome(name, "FAIL", str(why))
    except (pa.ArrowException, flight.FlightError) as error:
        return Outcome(name, "SKIPPED" if is_unimplemented(error) else "FAIL", error_text(error))
    except (KeyError, IndexError, TypeError, ValueError) as error:
        return Outcome(name, "FAIL", f"the reply is not as the contract says: {error!r}")


def validate(servers: Servers, args: Namespace) -> int:
    """Runs all checks, prints them, and returns the exit code: 1 if one failed or none passed."""
    name = f"ops_validate_{os.getpid()}_{secrets.token_hex(4)}"
    subject = Subject(servers, name, Mixture(Spec(ROWS, args.dim, text_field="meta")))
    outcomes: list[Outcome] = []
    checks: list[tuple[str, Callable[[Subject], str]]] = list(CHECKS)
    if args.keep:
        checks.pop()
        print(f"dataset {name} stays on the server")
    try:
        for check, function in checks:
            outcome = run_check(check, function, subject)
            outcomes.append(outcome)
            if not args.json:
                print(outcome.line(), flush=True)
            if function is checks_write.upload and outcome.status != "PASS":
                break
    finally:
        if not args.keep:
            tidy(servers, name)
    return report(outcomes, args.json)


def tidy(servers: Servers, name: str) -> None:
    """Removes what the checks left, as far as the server lets us."""
    try:
        drop(servers, name)
    except (Skipped, pa.ArrowException, flight.FlightError) as error:
        print(f"dataset {name} stays on the server: {error_text(error)}")


def report(outcomes: list[Outcome], as_json: bool) -> int:
    """Prints the counts; the exit code is 1 if a check failed or none passed."""
    counts: dict[str, Any] = {
        status: sum(outcome.status == status for outcome in outcomes)
        for status in ("PASS", "FAIL", "SKIPPED")
    }
    if as_json:
        print(json.dumps({"counts": counts, "checks": [vars(outcome) for outcome in outcomes]}, indent=2))
    else:
        print(f"{counts['PASS']} passed, {counts['FAIL']} failed, {counts['SKIPPED']} skipped")
    return 1 if counts["FAIL"] or not counts["PASS"] else 0
