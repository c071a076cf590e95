"""What a run prints and writes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any


def tell(report: dict[str, Any], table: str, path: str | None) -> None:
    """The table, and the report into a file; for ``-`` the report alone."""
    text = json.dumps(report, indent=2)
    if path and path != "-":
        Path(path).write_text(text)
    print(text if path == "-" else table)
