"""The memory of processes is counted by what they are."""

import subprocess
import sys

from harness.app import memory_use


def test_a_process_that_was_started_counts() -> None:
    """A child with 50 MB more counts as a node, and no more once it has ended."""
    before = memory_use.measure()
    code = "data = b'x' * 50_000_000; print('up', flush=True); input()"
    argv = [sys.executable, "-c", code]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == b"up\n"
        during = memory_use.measure()
        child.communicate(b"\n")
    assert during.nodes - before.nodes > 50
    assert memory_use.measure().nodes < during.nodes - 50
    assert before.harness > 10


def test_processes_are_recognized_by_their_commands() -> None:
    """Spark's JVM and its Python processes are no nodes."""
    assert memory_use._kind(["java", "org.apache.spark.deploy.SparkSubmit"]) == "spark"
    assert memory_use._kind(["python", "-m", "pyspark.daemon", "pyspark.worker"]) == "workers"
    assert memory_use._kind(["java", "kafka.Kafka"]) == "nodes"
    assert memory_use._kind(["python", "-c", "from multiprocessing.spawn import x"]) == "harness"
