"""The environment with the peers, `.venv-ann`: made when it is missing or its list has changed. Standard library alone."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
FOLDER = HERE.parent.parent / ".venv-ann"
PYTHON = FOLDER / "bin" / "python"
LIST = HERE / "requirements.txt"
READY = FOLDER / "ready"
# Built here, so that it uses all instructions of this processor: a wheel would be a weaker peer.
FROM_SOURCE = ("hnswlib",)


def packages(text: str) -> list[str]:
    """The packages of a list, one a line; what follows a # is a comment."""
    lines = (line.split("#")[0].strip() for line in text.splitlines())
    return [line for line in lines if line]


def ensure() -> None:
    """Makes it. A package that cannot be installed is told and left out: its peer says `not measured` later."""
    wanted = LIST.read_text()
    if READY.exists() and READY.read_text() == wanted:
        return
    if not PYTHON.exists():
        subprocess.run([sys.executable, "-m", "venv", FOLDER], check=True)
    environment = {name: value for name, value in os.environ.items() if name != "HNSWLIB_NO_NATIVE"}
    for package in packages(wanted):
        print(f"{FOLDER.name}: {package}", file=sys.stderr, flush=True)
        command = [
            PYTHON,
            "-m",
            "pip",
            "install",
            "--quiet",
            "--disable-pip-version-check",
            "--no-deps",
            package,
        ]
        name = package.split("==")[0]
        if name in FROM_SOURCE:
            command += ["--no-binary", name]
        done = subprocess.run(command, env=environment, check=False, capture_output=True, text=True)
        if done.returncode != 0:
            print(f"  not installed: {done.stderr.strip()[-400:]}", file=sys.stderr)
    READY.write_text(wanted)
