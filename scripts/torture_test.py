#!/usr/bin/env python3
"""Rounds of `kill -9` under load: what was acknowledged is there, what was deleted is not, and nothing else is.

    python scripts/torture_test.py --rounds 100
    python scripts/torture_test.py --rounds 100 --index spfresh
    python scripts/torture_test.py --rounds 5 --seed 42 --keep /tmp/folder

Needs pyarrow and numpy, and the built binary. Prints a summary in JSON; exits with 1 if anything was wrong.
"""

from __future__ import annotations

import argparse
import json
import secrets
import shutil
import sys
import tempfile
from pathlib import Path

from torture.run import Run


def parser() -> argparse.ArgumentParser:
    """The flags."""
    flags = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    flags.add_argument("--rounds", type=int, default=100, help="how often the server is killed")
    flags.add_argument("--seed", type=int, help="of all random choices; printed if not given")
    flags.add_argument("--writers", type=int, default=4, help="concurrent writers")
    flags.add_argument("--index", choices=["hnsw", "spfresh"], default="hnsw", help="kind of the vector columns' indexes")
    flags.add_argument("--keep", type=Path, help="a folder to work in, kept at the end")
    return flags


def main(argv: list[str] | None = None) -> int:
    """Runs all rounds; the exit code."""
    args = parser().parse_args(argv)
    seed = secrets.randbits(32) if args.seed is None else args.seed
    print(f"seed {seed}", file=sys.stderr, flush=True)
    folder = args.keep or Path(tempfile.mkdtemp(prefix="longbow-torture-"))
    folder.mkdir(parents=True, exist_ok=True)
    summary = Run(folder, seed, args.writers, args.index).rounds(args.rounds)
    print(json.dumps(summary, indent=2))
    if not args.keep and summary["ok"]:
        shutil.rmtree(folder)
    elif not summary["ok"]:
        print(f"the server's folder and log are in {folder}", file=sys.stderr)
    return 0 if summary["ok"] else 1


if __name__ == "__main__":
    sys.exit(main())
