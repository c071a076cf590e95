#!/usr/bin/env python3
"""Load test of a Longbow server: throughput, search latency with recall, and concurrent load.

    python scripts/perf_test.py --data-uri grpc://localhost:3000 --meta-uri grpc://localhost:3001
    python scripts/perf_test.py --all --rows 50000 --dim 768 --json results.json

Needs pyarrow and numpy alone. What the server does not offer is reported as skipped. The exit code is 1
if a test that ran had errors.
"""

from __future__ import annotations

import sys

from perf.args import parse
from perf.client import Servers
from perf.result import Result, write_json
from perf.suite import run_all


def main(argv: list[str] | None = None) -> int:
    """Runs the tests and returns the exit code."""
    args = parse(argv)
    results: list[Result] = []
    with Servers(args.data_uri, args.meta_uri) as servers:
        for result in run_all(servers, args):
            print(result.line(), flush=True)
            results.append(result)
    if args.json:
        write_json(results, args.json)
        print(f"results written to {args.json}")
    ran = [result for result in results if result.skipped is None]
    errors = sum(result.errors for result in ran)
    print(f"{len(ran)} tests ran, {len(results) - len(ran)} skipped, {errors} errors")
    return 1 if errors or not ran else 0


if __name__ == "__main__":
    sys.exit(main())
