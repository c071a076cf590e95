"""The rounds: start, check, load, kill."""

from __future__ import annotations

import random
import signal
import sys
import time
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pyarrow.flight as flight

from .check import Contents
from .load import TEMPORARY, Dropper, Load, Reader, Snapshots, Writer
from .model import Model, Verdict
from .rows import KEYS, KINDS
from .server import Server, settings
from .ways import Ways

# What a search by graph must find of the nearest rows, over the whole run.
RECALL = 0.9


class Run:
    """One folder and what it should hold."""

    def __init__(self, folder: Path, seed: int, writers: int, index: str) -> None:
        self.folder, self.seed, self.index = folder, seed, index
        self.rng = random.Random(seed)
        self.models = [{kind.name: Model() for kind in KINDS} for _ in range(writers)]
        self.temporary = Model()
        self.problems: list[str] = []
        self.verdict = Verdict()
        self.counts: dict[str, int] = {}
        self.recall = [0, 0]
        self.recoveries: list[float] = []

    def rounds(self, count: int) -> dict[str, Any]:
        """All rounds, and the summary."""
        started = time.monotonic()
        done = 0
        for number in range(count):
            if self.problems:
                break
            self.round(number, last=number == count - 1)
            done += 1
            print(f"\rround {done} of {count}", end="", file=sys.stderr, flush=True)
        print(file=sys.stderr)
        everything = [self.temporary, *(model for models in self.models for model in models.values())]
        recall = self.recall[0] / max(1, self.recall[1])
        if done and recall < RECALL:
            self.problems.append(f"recall@10 is {recall:.3f}, expected at least {RECALL}")
        return {
            "ok": not self.problems,
            "seed": self.seed,
            "index": self.index,
            "rounds": done,
            "acknowledged": sum(model.acknowledged for model in everything),
            "rows": sum(len(model.rows) for model in everything),
            **asdict(self.verdict),
            "mismatches": len(self.problems),
            "problems": self.problems[:20],
            "recall_at_10": round(recall, 4),
            **self.counts,
            "row_files": self.last_file(),
            "slowest_start_seconds": round(max(self.recoveries, default=0.0), 3),
            "seconds": round(time.monotonic() - started, 1),
        }

    def last_file(self) -> int:
        """The highest number that a row file has had: sealing and compaction count it up."""
        names = [path.stem for path in self.folder.glob("data/datasets/*/rows-*.arrow")]
        return max((int(name.split("-")[1]) for name in names), default=0)

    def round(self, number: int, last: bool) -> None:
        """One start, one load, one end; after the last, one more start that checks."""
        server, addresses = self.start()
        how = signal.SIGKILL
        try:
            self.check(addresses, searches=3 if number % 4 else 10)
            if not self.problems:
                how = self.load(server, addresses, late=number > 5)
        finally:
            code = server.end(how)
        if how == signal.SIGTERM and code != 0:
            self.problems.append(f"the server ended with {code} after SIGTERM")
        if last and not self.problems:
            server, addresses = self.start()
            self.check(addresses, searches=20)
            server.end(signal.SIGTERM)

    def start(self) -> tuple[Server, dict[str, str]]:
        """A server that is ready. Now and then it is killed before that, and started again."""
        while self.rng.random() < 0.25:
            server = Server(self.folder, settings(self.rng, self.index))
            time.sleep(self.rng.uniform(0.0, 0.15))
            server.end()
            self.count("killed_while_starting")
        server = Server(self.folder, settings(self.rng, self.index))
        try:
            addresses = server.wait()
        except RuntimeError:
            server.end()
            raise
        self.recoveries.append(time.monotonic() - server.started)
        return server, addresses

    def load(self, server: Server, addresses: dict[str, str], late: bool) -> signal.Signals:
        """Writes and reads until some moment, and ends the server there; how it was ended."""
        load = Load(addresses, late)
        seed = self.rng.getrandbits(32)
        threads = [Writer(load, owner, models, seed + owner) for owner, models in enumerate(self.models)]
        threads += [Dropper(load, self.temporary, seed - 1), Snapshots(load, seed - 2), Reader(load, seed - 3)]
        for thread in threads:
            thread.daemon = True
            thread.start()
        time.sleep(self.rng.uniform(0.2, 1.5))
        how = signal.SIGTERM if self.rng.random() < 0.1 else signal.SIGKILL
        died = server.process.poll()
        load.ending.set()
        server.process.send_signal(how)
        for thread in threads:
            thread.join(timeout=60)
            if thread.is_alive():
                self.problems.append(f"{thread.name} still waits for a server that has ended")
        if died is not None:
            self.problems.append(f"the server ended by itself with {died}")
        self.problems += load.errors + server.complaints()
        self.count("kills" if how == signal.SIGKILL else "stops")
        for what, times in load.counts.items():
            self.count(what, times)
        return how

    def check(self, addresses: dict[str, str], searches: int) -> None:
        """Everything that the server has, beside what it must have."""
        connect = (flight.connect(f"grpc+tcp://{addresses[side]}") for side in ("data", "meta"))
        with next(connect) as client, next(connect) as meta:
            for kind in KINDS:
                contents = Contents(client, kind)
                for owner, models in enumerate(self.models):
                    found = contents.owned(owner * KEYS, (owner + 1) * KEYS)
                    self.settle(f"{kind.name}, writer {owner}", models[kind.name], found)
                hits, wanted = contents.searches(self.rng, searches)
                self.recall = [self.recall[0] + hits, self.recall[1] + wanted]
                ways = Ways(client, meta, kind, contents.rows)
                gone = [models[kind.name].gone() for models in self.models]
                self.count("found_by_words_and_vectors", ways.check({k: v for each in gone for k, v in each.items()}))
                self.problems += contents.problems + ways.problems
            temporary = Contents(client, TEMPORARY)
            self.settle(TEMPORARY.name, self.temporary, temporary.rows)
            self.problems += temporary.problems

    def settle(self, what: str, model: Model, found: dict[int, int]) -> None:
        """Compares one writer's rows with those that were found."""
        verdict = model.settle(found)
        if verdict != Verdict():
            self.problems.append(f"{what}: {verdict}")
        for name, value in asdict(verdict).items():
            setattr(self.verdict, name, getattr(self.verdict, name) + value)

    def count(self, what: str, times: int = 1) -> None:
        """Counts something for the summary."""
        self.counts[what] = self.counts.get(what, 0) + times
