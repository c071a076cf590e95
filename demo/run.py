"""The demo: a reverse dictionary. Describe a thing in your own words, and Longbow finds the word.

    make demo                                     the whole story, some seconds long
    make demo TEXT="somebody who collects stamps" the same, and your own words too

Ends with 0 when everything held: nothing lost by `kill -9`, recall@10 of at least 0.99 at the
defaults, the word among the first ten answers for at least 80 % of 200 descriptions.
"""

from __future__ import annotations

import os
import shutil
import signal
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "python"))

import pyarrow as pa  # noqa: E402
import pyarrow.parquet as pq  # noqa: E402
from longbow import LongbowClient, LongbowError  # noqa: E402

import screen  # noqa: E402
from measure import HITS_WANTED, RECALL_WANTED, Figures, K, Question, exact_ids, measure  # noqa: E402
from server import Server, ServerFault  # noqa: E402
from words import own_words  # noqa: E402

DATASET = "dictionary"
SHOWN = (
    "a device for measuring temperature",
    "a doctor who treats animals",
    "African animal with a very long neck",
    "longing for the past",
)
FILTERED = "uncomfortable when meeting new people"
LAST_ID = 1
LAST_GLOSS = "what was written a moment before the end"


def load_questions() -> list[Question]:
    """The 200 descriptions that ship with the demo."""
    rows = pq.read_table(HERE / "data" / "queries.parquet").to_pylist()
    return [Question(row["text"], row["word"], row["vector"]) for row in rows]


def last_row(schema: pa.Schema) -> pa.Table:
    """The row that is written a moment before the kill; its vector is far from all others."""
    dim = schema.field("vector").type.list_size
    row = {
        "id": LAST_ID,
        "word": "last word",
        "lemmas": ["last word"],
        "pos": "noun",
        "lexfile": "noun.communication",
        "gloss": LAST_GLOSS,
        "vector": [(-1) ** n * dim**-0.5 for n in range(dim)],
    }
    return pa.Table.from_pylist([row], schema=schema)


class Demo:
    """The story, step by step, on one folder; `faults` gathers what did not hold."""

    def __init__(self, folder: Path, text: str) -> None:
        self.folder, self.text = folder, text
        self.faults: list[str] = []
        self.steps = screen.Steps()
        self.words = pq.read_table(HERE / "data" / "wordnet.parquet")
        self.questions = load_questions()
        self.server: Server | None = None

    def start(self) -> LongbowClient:
        """Starts the server on the folder, and a client of it."""
        self.server = Server(self.folder / "data", self.folder / "server.log")
        at = self.running.addresses
        return LongbowClient(f"grpc://{at['data']}", f"grpc://{at['meta']}")

    @property
    def running(self) -> Server:
        """The server, once it was started."""
        if self.server is None:
            raise ServerFault("no server was started")
        return self.server

    def check(self, name: str, value: str, good: bool, wanted: str) -> None:
        """Shows a figure that must be good, and keeps it for the end if it is not."""
        screen.figure(name, value, good, wanted)
        if not good:
            self.faults.append(f"{name}: {value}; wanted: {wanted}")

    def run(self) -> None:
        """All of it."""
        screen.title("LONGBOW", "a reverse dictionary: describe a thing, and get its word")
        self.steps.next("Start the server")
        with self.start() as client:
            self.tell_start()
            self.load(client)
            self.ask(client)
            truth = exact_ids(client, DATASET, self.questions)
            self.show_figures(measure(client, DATASET, self.questions, truth))
            self.kill_after_a_write(client)
        self.steps.next("Start it again on the same folder")
        with self.start() as client:
            self.tell_start()
            self.compare(client, truth)
        self.steps.next("Stop it cleanly")
        screen.note(f"SIGTERM: ended in {self.running.stop():.2f} s; its folder is removed")

    def tell_start(self) -> None:
        """Where the server listens, and how soon it was ready."""
        server = self.running
        address = server.addresses["data"]
        screen.note(f"longbow serve   pid {server.pid}   Arrow Flight on {address}")
        screen.note(f"ready in {server.seconds_to_ready:.2f} s")

    def load(self, client: LongbowClient) -> None:
        """Sends the Parquet file's rows, and waits for the index."""
        self.steps.next(
            "Load the dictionary: WordNet meanings, each a vector of 384 float16 numbers"
        )
        bar = screen.Bar()
        done = client.insert(DATASET, self.words, metric="cosine", batch_size=1000, progress=bar)
        bar.end()
        rows, total = f"{done.rows:,}", f"{self.words.num_rows:,}"
        self.check("rows acknowledged", rows, rows == total, total)
        self.check("searchable when acknowledged", str(done.searchable), done.searchable, "True")
        # By default the log is synced behind the acknowledgements; see `STORAGE_ASYNC_FSYNC`.
        synced = "yes" if done.durable else "in a moment; it survives kill -9 already"
        screen.figure(f"synced to disk (log offset {done.offset})", synced)
        began = time.monotonic()
        client.wait_until_indexed(DATASET, timeout=120)
        screen.figure("all in the index after", f"{time.monotonic() - began:.2f} s more")

    def ask(self, client: LongbowClient) -> None:
        """Shows the answers to some descriptions, and to the reader's own."""
        self.steps.next("Ask")
        by_text = {question.text: question for question in self.questions}
        for text in SHOWN:
            self.show(client, text, by_text[text].vector, by_text[text].word)
        question = by_text[FILTERED]
        self.show(client, FILTERED, question.vector, question.word, ("pos", "=", "adjective"))
        if self.text:
            vector = own_words(self.text)
            if vector is not None:
                self.show(client, self.text, vector, None, limit=K)

    def show(self, client, text, vector, word, only=None, limit: int = 4) -> None:
        """The first few answers to one description."""
        reply = client.search(DATASET, vector, limit, columns=["lemmas", "gloss"], filters=only)
        extra = f"   only where {' '.join(only)}" if only else ""
        screen.answers(text, reply.to_pylist(), word, extra)

    def show_figures(self, figures: Figures) -> None:
        """Recall, hits, latency over all descriptions."""
        self.steps.next(
            f"Measure: {len(self.questions)} descriptions, one at a time, with the defaults"
        )
        recall, hits = figures.recall, figures.in_ten
        self.check_recall("recall@10 against an exact scan", recall)
        screen.figure("the word is the first answer", f"{figures.first:.1%}")
        good = hits >= HITS_WANTED
        wanted = f"at least {HITS_WANTED:.0%}"
        self.check("the word is among the first ten", f"{hits:.1%}", good, wanted)
        times = f"{figures.p50:.2f} / {figures.p95:.2f} / {figures.p99:.2f} ms"
        screen.figure("latency seen from Python, p50 / p95 / p99", times)
        screen.figure("found by", figures.strategy)

    def check_recall(self, name: str, recall: float) -> None:
        """Recall has its promise."""
        self.check(name, f"{recall:.4f}", recall >= RECALL_WANTED, f"at least {RECALL_WANTED}")

    def kill_after_a_write(self, client: LongbowClient) -> None:
        """One more row, and no mercy as soon as it is acknowledged."""
        self.steps.next("Write one more row, and kill the server the moment it is acknowledged")
        done = client.insert(DATASET, last_row(self.words.schema), metric="cosine", progress=False)
        died_of = self.running.kill()
        screen.note(f"row {LAST_ID} acknowledged at log offset {done.offset}")
        screen.note(f"kill -9 {self.running.pid}: it died of {signal.Signals(died_of).name}")

    def compare(self, client: LongbowClient, truth: list[list[int]]) -> None:
        """Nothing lost: the rows, the last row, the answers."""
        rows, wanted = client.get_info(DATASET).rows, self.words.num_rows + 1
        self.check("rows", f"{rows:,}", rows == wanted, f"{wanted:,}: none lost")
        gloss = client.get(DATASET, LAST_ID)["gloss"]
        self.check("the row written before the kill", f"“{gloss}”", gloss == LAST_GLOSS, "there")
        again = exact_ids(client, DATASET, self.questions)
        same = sum(a == b for a, b in zip(again, truth))
        good = same == len(truth)
        name = "descriptions with the same exact answers"
        self.check(name, str(same), good, f"all {len(truth)}")
        client.wait_until_indexed(DATASET, timeout=120)
        recall = measure(client, DATASET, self.questions, truth).recall
        self.check_recall("recall@10 of the recovered index", recall)


def finish(demo: Demo, seconds: float) -> int:
    """The last lines, and the exit code."""
    screen.say()
    for fault in demo.faults:
        screen.say(f"  {screen.mark(False)} {fault}")
    if demo.faults:
        return 1
    screen.say(
        f"  {screen.mark(True)} {screen.paint('Everything held', 'bold')}, in {seconds:.1f} s."
    )
    if not demo.text:
        screen.say('    Your own words: make demo TEXT="somebody who collects stamps"')
    screen.say()
    return 0


def main() -> int:
    """Runs the story in a folder of its own, and leaves nothing behind."""
    # An end by SIGTERM passes through `finally`, too.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    began = time.monotonic()
    text = " ".join(sys.argv[1:]) or os.environ.get("TEXT", "")
    folder = Path(tempfile.mkdtemp(prefix="longbow-demo-"))
    demo = Demo(folder, text.strip())
    try:
        demo.run()
    except (ServerFault, LongbowError, OSError) as error:
        demo.faults.append(f"{type(error).__name__}: {error}")
    except KeyboardInterrupt:
        demo.faults.append("interrupted")
    finally:
        if demo.server:
            demo.server.destroy()
        shutil.rmtree(folder, ignore_errors=True)
    return finish(demo, time.monotonic() - began)


if __name__ == "__main__":
    sys.exit(main())
