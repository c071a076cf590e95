"""More vectors than memory: Longbow with its vectors in postings, beside LanceDB at its best and faiss, with the same memory.

    python bench/spfresh/run_large.py [--rows 2000000 --dim 128 --centres 2000 --share 0.1] [--source FILE.npy]
                                      [--only longbow,lancedb-pq,lancedb-hnsw,lancedb-flat,faiss] [--json FILE|-]

A mixture of Gaussians whose centres drift while rows come, or the vectors of a file, repeated with noise of 0.3 of their length;
queries are of its last state, one at a time. Each database is
built in a process of its own, and searched in another that gets a share of the vectors' bytes beside what the interpreter
and its libraries take: pages of files that it has in memory count (a memory control group; ``confined`` says whether the
system allowed it). Longbow is built within the same share, too (``LONGBOW_MEMORY_LIMIT``). ``anonymous_mb`` is
what a process holds in memory of its own, ``mapped_mb`` what of its files is mapped in; ``read_bytes`` and
``waits_for_pages`` are by search.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from confined import drop_caches, release
from mixture import Mixture, truth
from told import tell

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent), str(HERE.parent / "databases")]

import environments
import machine

DATABASES = ("longbow", "lancedb-pq", "lancedb-hnsw", "lancedb-flat", "faiss")
#: Recall at which rates are compared.
RECALL = 0.95


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--rows", type=int, default=2_000_000)
    parser.add_argument("--dim", type=int, default=128)
    parser.add_argument("--centres", type=int, default=2_000)
    parser.add_argument("--source", type=Path, help="a .npy file: its vectors, repeated with noise")
    parser.add_argument("--queries", type=int, default=2_000)
    parser.add_argument("--share", type=float, default=0.1, help="memory, of the vectors' bytes")
    parser.add_argument("--only", type=lambda text: text.split(","), default=list(DATABASES))
    parser.add_argument("--cache", type=Path, default=Path.home() / ".cache" / "longbow-bench")
    parser.add_argument("--dir", type=Path, help="the disk that is measured")
    parser.add_argument("--json", help="a file, or - for standard output")
    return parser.parse_args()


def run(python: str | Path, *words: str | Path) -> dict[str, Any]:
    """What a child says; one that fails says so instead of figures."""
    environment = {
        key: value for key, value in os.environ.items() if not key.startswith("LONGBOW_")
    }
    command = [python, HERE / "large_child.py", *words]
    with subprocess.Popen(
        command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as child:
        out, said = child.communicate()
    release(child.pid)
    if child.returncode != 0:
        return {"failed": f"exit {child.returncode}: {said.strip()[-400:]}"}
    told: dict[str, Any] = json.loads(out.splitlines()[-1])
    return told


def best(points: list[dict[str, Any]]) -> dict[str, Any] | None:
    """The fastest point of enough recall."""
    enough = [point for point in points if point["recall"] >= RECALL]
    return max(enough, key=lambda point: float(point["searches_per_s"]), default=None)


def table(rows: list[dict[str, Any]]) -> str:
    lines = [
        f"| database | built in s | searches/s at recall >= {RECALL} | recall | p50, p99, p99.9 us | read a search | own memory, MB |",
        "|---|---|---|---|---|---|---|",
    ]
    for row in rows:
        point = best(row.get("points", []))
        if point is None:
            lines.append(
                f"| {row['database']} | {row.get('failed', 'recall not reached')} |" + " - |" * 5
            )
            continue
        tail = ", ".join(f"{point[name]:,.0f}" for name in ("p50_us", "p99_us", "p999_us"))
        own = row["memory"]["after"]["anonymous_mb"] - row["memory"]["before"]["anonymous_mb"]
        lines.append(
            f"| {row['database']} | {row['insert_s'] + row['until_indexed_s']:,.0f} | {point['searches_per_s']:,.0f} |"
            f" {point['recall']:.3f} | {tail} | {point['read_bytes'] / 1024:,.1f} KiB | {own:,.0f} |"
        )
    return "\n".join(lines)


def measure(name: str, given: argparse.Namespace, data: tuple[Path, Path]) -> dict[str, Any]:
    mixture, exact = data
    limit = str(int(given.rows * given.dim * 4 * given.share))
    python: str | Path = sys.executable
    if name != "longbow":
        python = environments.ensure(name.partition("-")[0], given.cache)
    with tempfile.TemporaryDirectory(dir=given.dir) as folder:
        told = run(python, "build", name, mixture, folder, limit)
        if "failed" not in told:
            drop_caches()
            told |= run(python, "search", name, mixture, folder, limit, exact)
    return {"database": name, **told}


def main() -> None:
    given = arguments()
    if given.source:
        given.dim = int(np.load(given.source, mmap_mode="r").shape[1])
    source = str(given.source.resolve()) if given.source else None
    mixture = Mixture(given.rows, given.dim, given.centres, given.queries, source)
    rows = []
    with tempfile.TemporaryDirectory(dir=given.dir) as folder:
        data = Path(folder) / "mixture.json", Path(folder) / "truth.npy"
        mixture.save(data[0])
        np.save(data[1], truth(mixture))
        for name in given.only:
            rows.append(measure(name, given, data))
            print(f"  {name}: {json.dumps(rows[-1])}", file=sys.stderr, flush=True)
    vectors = given.rows * given.dim * 4 / 2**20
    report = {
        "machine": machine.describe(given.dir or Path(tempfile.gettempdir())),
        "vectors_mb": vectors,
        "limit_mb": vectors * given.share,
        "rows": rows,
    }
    tell(report, table(rows), given.json)


if __name__ == "__main__":
    main()
