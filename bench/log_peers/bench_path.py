"""Importing this first makes the modules of `bench/` importable."""

from __future__ import annotations

import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent

if str(HERE.parent) not in sys.path:
    sys.path.append(str(HERE.parent))
