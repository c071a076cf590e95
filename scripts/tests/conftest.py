"""Makes the packages under `scripts/` and `bench/`, and the server of the client's tests, importable."""

import sys
from pathlib import Path

REPO = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(REPO / "scripts"), str(REPO / "bench"), str(REPO / "python" / "tests")]
