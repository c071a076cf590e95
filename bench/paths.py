"""Where things are; importing this makes the packages under `scripts/` importable."""

from __future__ import annotations

import os
import sys
from pathlib import Path

REPO = Path(__file__).resolve().parent.parent
BENCH = REPO / "bench"
TARGET = Path(os.environ.get("CARGO_TARGET_DIR", REPO / "target"))
BINARY = Path(os.environ.get("LONGBOW_BIN", TARGET / "release" / "longbow"))

if str(REPO / "scripts") not in sys.path:
    sys.path.insert(0, str(REPO / "scripts"))
