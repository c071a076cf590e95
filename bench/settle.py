"""The state that every timed transfer starts from, the same for both sides.

Two things would else decide a figure, by whose turn it is: what the other side left for the disk to write, and
memory. A virtual machine may give free memory back to its host (free page reporting), and then the first touch of it
costs 3 ms a MB instead of 0.4: on such a machine either server takes 900 MB/s or 300, by whether some process had ended
in the seconds before and left memory behind that the host still backs.
"""

from __future__ import annotations

import mmap
import os
from pathlib import Path

# Touching in steps of a page is what makes it real.
PAGE = 4096


def settle(transfer_bytes: int) -> None:
    """Writes all files out, and leaves as much touched and free memory as a transfer on either side may take anew."""
    os.sync()
    # On either side: the client's batch or answer, the server's copy, the page cache.
    wanted = min(3 * transfer_bytes + (512 << 20), _available() // 2)
    wanted -= wanted % PAGE
    with mmap.mmap(-1, wanted, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS) as memory:
        memory.madvise(mmap.MADV_HUGEPAGE)
        pages = memoryview(memory)[::PAGE]
        pages[:] = bytes(len(pages))
        pages.release()


def _available() -> int:
    for line in Path("/proc/meminfo").read_text().splitlines():
        if line.startswith("MemAvailable:"):
            return int(line.split()[1]) * 1024
    raise RuntimeError("/proc/meminfo has no MemAvailable")
