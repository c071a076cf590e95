"""Updates and searches of a small set, beside LanceDB in the same run.

    python bench/spfresh/run.py [--dim 64 --base 10000 --updates 2000 --queries 200 --update-batch 1024]
                                [--dataset FILE] [--rounds 5] [--json FILE|-]

The recipe is that of a published comparison: noise that cannot be clustered, 10,000 rows of 64 elements, updates of 2,000
rows in batches of 1,024, ten neighbours by 200 queries, one at a time. Each database runs in a process of its own, in
rounds that take turns. An update counts until its rows are found by searches; those named ``+durable`` until they are
synced, too. ``exact`` compares all rows, ``spfresh`` reads postings, ``graph`` walks one; the number is the effort.
LanceDB has IVF_FLAT of 96 lists and reads 8 of them; ``optimised`` folds updated rows into its index before it searches.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from recipe import Recipe
from told import tell

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent), str(HERE.parent / "databases")]

import environments
import machine

DATABASES = (
    "longbow-exact",
    "longbow-spfresh:32",
    "longbow-spfresh:512",
    "longbow-graph:400",
    "longbow-exact+durable",
    "lancedb-plain",
    "lancedb-optimised",
)
FIGURES = ("update_qps", "search_qps", "recall_at_k", "build_s")
#: What ratios are to.
PEER = "lancedb-plain"


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--dim", type=int, default=64)
    parser.add_argument("--base", type=int, default=10_000)
    parser.add_argument("--updates", type=int, default=2_000)
    parser.add_argument("--queries", type=int, default=200)
    parser.add_argument("--update-batch", type=int, default=1_024)
    parser.add_argument("--seed", type=int, default=404)
    parser.add_argument("--dataset", type=Path, help="JSON instead: base, updates, queries")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--only", type=lambda text: text.split(","), default=list(DATABASES))
    parser.add_argument("--cache", type=Path, default=Path.home() / ".cache" / "longbow-bench")
    parser.add_argument("--dir", type=Path, help="the disk that is written to")
    parser.add_argument("--json", help="a file, or - for standard output")
    return parser.parse_args()


def run(python: str | Path, name: str, data: Path, folder: str, batch: int) -> dict[str, Any]:
    command = [python, HERE / "recipe_child.py", name, data, folder, str(batch)]
    environment = {key: value for key, value in os.environ.items() if not key.startswith("LONGBOW_")}
    done = subprocess.run(command, env=environment, check=True, capture_output=True, text=True)
    told: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return told


def medians(rounds: list[dict[str, Any]], name: str) -> dict[str, Any]:
    own = [one for one in rounds if one["database"] == name]
    told = {figure: statistics.median(one[figure] for one in own) for figure in FIGURES}
    for figure in ("update_qps", "search_qps"):
        values = [one[figure] for one in own]
        told[f"{figure}_range"] = [min(values), max(values)]
    return {"database": name, "rounds": len(own), **told}


def table(rows: list[dict[str, Any]]) -> str:
    lines = ["| database | updates/s | searches/s | recall@10 | of LanceDB's updates, searches |", "|---|---|---|---|---|"]
    peer = next((row for row in rows if row["database"] == PEER), None)
    for row in rows:
        ratios = "-"
        if peer is not None:
            pairs = [row[figure] / peer[figure] for figure in ("update_qps", "search_qps")]
            ratios = ", ".join(f"{pair:.1f}" for pair in pairs)
        lines.append(
            f"| {row['database']} | {row['update_qps']:,.0f} | {row['search_qps']:,.0f} |"
            f" {row['recall_at_k']:.3f} | {ratios} |"
        )
    return "\n".join(lines)


def main() -> None:
    given = arguments()
    recipe = (
        Recipe.read(given.dataset)
        if given.dataset
        else Recipe.made(given.dim, given.base, given.updates, given.queries, given.seed)
    )
    pythons: dict[str, str | Path] = {"longbow": sys.executable}
    if any(name.startswith("lancedb") for name in given.only):
        pythons["lancedb"] = environments.ensure("lancedb", given.cache)
    rounds = []
    with tempfile.TemporaryDirectory(dir=given.dir) as folder:
        data = Path(folder) / "recipe.npz"
        recipe.save(data)
        for turn in range(given.rounds):
            for name in given.only[turn % len(given.only) :] + given.only[: turn % len(given.only)]:
                with tempfile.TemporaryDirectory(dir=given.dir) as own:
                    python = pythons[name.partition("-")[0]]
                    rounds.append(run(python, name, data, own, given.update_batch))
                print(f"  round {turn + 1}: {name}", file=sys.stderr, flush=True)
    rows = [medians(rounds, name) for name in given.only]
    report = {"machine": machine.describe(given.dir or Path(tempfile.gettempdir())), "rows": rows, "rounds": rounds}
    tell(report, table(rows), given.json)
