"""Values of flags that the comparisons share."""

from __future__ import annotations

import argparse


def positive(text: str) -> int:
    """A number above 0."""
    if not text.isdecimal() or int(text) == 0:
        raise argparse.ArgumentTypeError(f"{text} is not a number above 0")
    return int(text)


def names(known: list[str], text: str) -> list[str]:
    """Some of the known names, between commas."""
    found = text.split(",")
    if unknown := [name for name in found if name not in known]:
        raise argparse.ArgumentTypeError(f"unknown: {', '.join(unknown)}; there are {', '.join(known)}")
    return found
