#!/usr/bin/env python3
"""Operates and validates a Longbow server: status, data in and out, searches, and functional checks.

    python scripts/ops_test.py --data-uri grpc://localhost:3000 --meta-uri grpc://localhost:3001 status
    python scripts/ops_test.py validate

Needs pyarrow and numpy alone. `validate` exits with 1 if a check failed; what the server does not offer is
said as skipped. Other commands exit with 1 if the server refuses, and with 2 if it does not offer them.
"""

from __future__ import annotations

import sys

import pyarrow as pa
import pyarrow.flight as flight
from ops.args import parser
from ops.commands import COMMANDS, show
from ops.validate import validate
from perf.client import Servers, Skipped, error_text, is_unimplemented


def main(argv: list[str] | None = None) -> int:
    """Runs one command and returns the exit code."""
    args = parser().parse_args(argv)
    with Servers(args.data_uri, args.meta_uri) as servers:
        if args.command == "validate":
            return validate(servers, args)
        try:
            show(COMMANDS[args.command](servers, args), args.json)
        except Skipped as why:
            print(f"skipped: {why}")
            return 2
        except (pa.ArrowException, flight.FlightError) as error:
            if is_unimplemented(error):
                print(f"skipped: {error_text(error)}")
                return 2
            print(f"error: {error_text(error)}", file=sys.stderr)
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
