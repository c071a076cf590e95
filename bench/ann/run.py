#!/usr/bin/env python3
"""Longbow's indexes beside others, on real vectors, in one run. See `compare.py --help` for what it takes.

    python3 bench/ann/run.py [--quick] [--sets synth128,fashion-mnist] [--only longbow-hnsw,hnswlib] [--json FILE]

Makes the environment `.venv-ann` if it is missing, and goes on in it.
"""

from __future__ import annotations

import os
import sys

import venv_ann

if __name__ == "__main__":
    venv_ann.ensure()
    compare = str(venv_ann.HERE / "compare.py")
    os.execv(venv_ann.PYTHON, [str(venv_ann.PYTHON), compare, *sys.argv[1:]])
