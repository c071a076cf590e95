"""Kafka: one broker in KRaft mode and two topics, one synced before each answer and one with Kafka's default.

Blocking callers are `KafkaCallers.java`, threads of one process that share a producer. Pipelined load is Kafka's own
`ProducerPerformance`.
"""

from __future__ import annotations

import base64
import os
import re
import secrets
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import NamedTemporaryFile, TemporaryDirectory

import numpy as np
from bench_path import HERE
from case import (
    BLOCKING,
    ENTRY_BYTES,
    Case,
    Figures,
    NotMeasured,
    Peer,
    Window,
    figures,
)
from child import Server, free_port, listens, program, run

SYNCED, DEFAULT = "kafka-synced", "kafka-default"
POLICIES = {
    SYNCED: "acks=all, 1 replica, flush.messages=1: log and index files are synced at each produce request, before its "
    "answer; what the producer sends in one request shares a sync",
    DEFAULT: "acks=all, 1 replica, default flush policy: answered from the page cache, NOT synced, "
    "lost if the machine fails",
}
TOPICS = {SYNCED: ("synced", ["flush.messages=1"]), DEFAULT: ("default", [])}
# What is older is deleted behind the load, so that it fills no disk.
KEEP = ["segment.bytes=67108864", "retention.bytes=268435456"]
DEPENDENCY_PLUGIN = "org.apache.maven.plugins:maven-dependency-plugin:3.6.1:build-classpath"
# The heap and collector of Kafka's own start script.
BROKER_JVM = [
    "-Xms1g",
    "-Xmx1g",
    "-XX:+UseG1GC",
    "-XX:MaxGCPauseMillis=20",
    "-XX:InitiatingHeapOccupancyPercent=35",
]
# The default batch.size of 16 KB would split what 100 callers send into seven batches.
PRODUCER = ["acks=all", "linger.ms=0", "batch.size=524288", "compression.type=none"]
# A JVM is slow until it has compiled what is hot: the broker once, the callers each time.
WARM_BROKER = Window(1.0, 4.0)
WARM_CALLERS = 3.0
# What ProducerPerformance sends in a second of the window, roughly.
RECORDS_PER_SECOND = 50_000
RESULT = re.compile(
    r"([\d.]+) records/sec .* (\d+) ms 50th, (\d+) ms 95th, (\d+) ms 99th",
)


@contextmanager
def peers(folder: Path) -> Iterator[list[Peer]]:
    """Fetches Kafka with Maven, and runs a broker in `folder`."""
    java = program("java", "default-jdk-headless")
    program("javac", "default-jdk-headless")
    with TemporaryDirectory(prefix="kafka-", dir=folder) as place:
        classpath = _classpath(Path(place))
        ports = (free_port(), free_port())
        properties = Path(place) / "server.properties"
        properties.write_text(_properties(Path(place) / "data", *ports))
        format_storage = ["format", "--cluster-id", _cluster_id(), "--config", properties]
        run([java, "-cp", classpath, "kafka.tools.StorageTool", *format_storage], 120)
        command = [java, *BROKER_JVM, "-cp", classpath, "kafka.Kafka", properties]
        server = Server(command, folder / "kafka.log")
        try:
            server.wait_ready(lambda: listens(ports[0]), 120)
            broker = Broker(java, classpath, f"127.0.0.1:{ports[0]}", folder)
            broker.create_topics()
            for topic, _ in TOPICS.values():
                broker.blocking(topic, Case(100, 1), WARM_BROKER)
            yield [Peer(name, POLICIES[name], broker.load(TOPICS[name][0])) for name in (SYNCED, DEFAULT)]
        finally:
            server.stop()


@dataclass(frozen=True)
class Broker:
    """A running broker."""

    java: str
    classpath: str
    address: str
    folder: Path

    def create_topics(self) -> None:
        """One partition each: one order of all entries, as in a log."""
        for topic, settings in TOPICS.values():
            create = ["--create", "--topic", topic, "--partitions", "1", "--replication-factor", "1"]
            for setting in [*settings, *KEEP]:
                create += ["--config", setting]
            self._tool("TopicCommand", 120, "--bootstrap-server", self.address, *create)

    def load(self, topic: str) -> Callable[[Case, Window], Figures]:
        """Measures one case against this topic."""

        def measure(case: Case, window: Window) -> Figures:
            if case.mode == BLOCKING:
                return self.blocking(topic, case, window)
            return self.pipelined(topic, case, window)

        return measure

    def blocking(self, topic: str, case: Case, window: Window) -> Figures:
        """Callers that wait for their acknowledgements."""
        with TemporaryDirectory(prefix="callers-", dir=self.folder) as place:
            out = Path(place) / "taken"
            warmup = max(window.warmup, WARM_CALLERS)
            numbers = (case.callers, case.rows, warmup, window.seconds, ENTRY_BYTES)
            command = [self.java, "-Xmx1g", "-cp", self.classpath, HERE / "KafkaCallers.java", topic, out]
            command += [str(number) for number in numbers]
            run([*command, f"bootstrap.servers={self.address}", *PRODUCER, _in_flight(case)], window.timeout)
            return figures(np.fromfile(out, dtype=">i8").astype(np.int64), case.rows, window.seconds)

    def pipelined(self, topic: str, case: Case, window: Window) -> Figures:
        """One producer that sends as fast as its buffer is emptied. The tool is told a number of records, and has no
        warm-up: there are so many that its start does not matter much."""
        buffer = 4 * case.rows * ENTRY_BYTES
        records = int(RECORDS_PER_SECOND * (window.warmup + window.seconds))
        with NamedTemporaryFile("w", dir=self.folder) as payload:
            # Else the tool makes a new payload for each record, which costs it more than sending.
            payload.write(secrets.token_hex(ENTRY_BYTES // 2))
            payload.flush()
            load = ["--topic", topic, "--num-records", str(records), "--payload-file", payload.name]
            load += ["--throughput", "-1", "--producer-props", f"bootstrap.servers={self.address}", *PRODUCER]
            printed = self._tool("ProducerPerformance", window.timeout, *load, f"buffer.memory={buffer}")
        return performance(printed)

    def _tool(self, name: str, timeout: float, *arguments: str) -> str:
        command = [self.java, "-Xmx512m", "-cp", self.classpath, f"org.apache.kafka.tools.{name}", *arguments]
        return run(command, timeout)


def _in_flight(case: Case) -> str:
    """Requests under way at once, whichever was faster: with one, all that comes meanwhile shares the next request
    and its sync, twice the default's rate with single rows; large commits fill requests anyway."""
    return f"max.in.flight.requests.per.connection={1 if case.rows == 1 else 5}"


def performance(printed: str) -> Figures:
    """The last line of ProducerPerformance with percentiles; they are in whole milliseconds."""
    lines = RESULT.findall(printed)
    if not lines:
        raise NotMeasured(f"ProducerPerformance printed no result: {printed.strip()[-200:]}")
    rate, *percentiles = (float(value) for value in lines[-1])
    return Figures(rate, *percentiles)


def _classpath(place: Path) -> str:
    """The jars, in Maven's own cache after the first time."""
    maven = program("mvn", "maven")
    out = place / "classpath"
    run([maven, "-q", "-B", "-f", HERE / "kafka_pom.xml", DEPENDENCY_PLUGIN, f"-Dmdep.outputFile={out}"], 600)
    return out.read_text().strip()


def _cluster_id() -> str:
    """A UUID as Kafka writes it; it must not begin like a flag."""
    return "L" + base64.urlsafe_b64encode(os.urandom(16)).decode()[1:22]


def _properties(data: Path, port: int, controller: int) -> str:
    """Only what a single node needs; flush settings are the topics'."""
    settings = {
        "process.roles": "broker,controller",
        "node.id": 1,
        "controller.quorum.voters": f"1@127.0.0.1:{controller}",
        "controller.listener.names": "CONTROLLER",
        "inter.broker.listener.name": "BROKER",
        "listeners": f"BROKER://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller}",
        "advertised.listeners": f"BROKER://127.0.0.1:{port}",
        "listener.security.protocol.map": "BROKER:PLAINTEXT,CONTROLLER:PLAINTEXT",
        "log.dirs": data,
        "auto.create.topics.enable": "false",
        "log.retention.check.interval.ms": 1000,
        "log.segment.delete.delay.ms": 1000,
    }
    return "".join(f"{name}={value}\n" for name, value in settings.items())
