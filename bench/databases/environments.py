"""The environment of each peer, by an exact list: made when it is missing or its list has changed."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent


class NotInstalled(Exception):
    """A peer that cannot be had here; the text says why."""


def ensure(name: str, cache: Path) -> Path:
    """The Python of the environment `name`, below `cache`."""
    folder = cache / "venvs" / name
    python, ready = folder / "bin" / "python", folder / "ready"
    wanted = HERE / "requirements" / f"{name}.txt"
    if ready.exists() and ready.read_text() == wanted.read_text():
        return python
    print(f"  installing {name} ...", file=sys.stderr, flush=True)
    if not python.exists():
        subprocess.run([sys.executable, "-m", "venv", folder], check=True)
    command = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "-r", wanted]
    # hnswlib is to be built for this processor.
    environment = {key: value for key, value in os.environ.items() if key != "HNSWLIB_NO_NATIVE"}
    done = subprocess.run(command, env=environment, check=False, capture_output=True, text=True)
    if done.returncode != 0:
        raise NotInstalled(f"not installed: {done.stderr.strip()[-300:]}")
    ready.write_text(wanted.read_text())
    return python
