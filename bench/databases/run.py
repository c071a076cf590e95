#!/usr/bin/env python3
"""Longbow beside the databases that a user would pick instead. See `run.py --help` for what it takes.

    .venv/bin/python bench/databases/run.py [--rows 20000] [--sets fashion-mnist] [--only longbow,qdrant] [--json FILE]

Makes an environment for each peer if it is missing.
"""

from __future__ import annotations

import sys

import compare_databases

if __name__ == "__main__":
    sys.exit(compare_databases.main())
