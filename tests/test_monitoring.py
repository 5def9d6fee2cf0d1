"""The example files of monitoring name metrics that a real broker serves."""

import json
import re
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import confluent_kafka
import pytest
import yaml
from prometheus_client.parser import text_string_to_metric_families

from tests.broker_impl.test_process import Site, terminate, wait_for

NAME = re.compile(r"\b(?:kafka|process)_\w+")
METRICS = {"faultline.metrics.listener": "127.0.0.1:0"}
Samples = dict[tuple[str, ...], float]


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    site = Site(tmp_path)
    yield site
    site.close()


def scrape(site: Site) -> Samples:
    """All samples of the broker by name and values of labels, in the order of the labels."""
    with urllib.request.urlopen(f"http://{site.address(listener='METRICS')}/metrics") as response:
        text = response.read().decode()
    return {
        (sample.name, *(value for _, value in sorted(sample.labels.items()))): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def expressions(folder: Path) -> Iterator[str]:
    """All expressions of the alarms and of the dashboard."""
    for group in yaml.safe_load((folder / "rules.yml").read_text())["groups"]:
        yield from (rule["expr"] for rule in group["rules"])
    dashboard = json.loads((folder / "dashboard.json").read_text())
    for panel in dashboard["panels"]:
        yield from (target["expr"] for target in panel["targets"])
    for variable in dashboard["templating"]["list"]:
        if variable["type"] == "query":
            yield variable["query"]["query"]


def recorded(folder: Path) -> set[str]:
    """The metrics that the rules themselves record."""
    groups: Any = yaml.safe_load((folder / "rules.yml").read_text())["groups"]
    return {rule["record"] for group in groups for rule in group["rules"] if "record" in rule}


def use(site: Site) -> None:
    """Write three records, read them in a group, commit its offset, and fail one request."""
    servers = {"bootstrap.servers": site.address()}
    producer = confluent_kafka.Producer(servers | {"acks": "all"})
    for value in ("a", "b", "c"):
        producer.produce("t", value, partition=0)
    assert producer.flush(15) == 0
    consumer = confluent_kafka.Consumer(
        servers | {"group.id": "g", "auto.offset.reset": "earliest", "enable.auto.commit": False}
    )
    consumer.subscribe(["t"])
    seen: list[confluent_kafka.Message] = []

    def has_read_all() -> bool:
        seen.extend(consumer.consume(3, 0.1))
        return len(seen) == 3

    wait_for(has_read_all)
    consumer.commit(asynchronous=False)
    consumer.close()


@pytest.mark.slow
@pytest.mark.cluster
def test_examples_name_what_a_broker_serves(site: Site, repository: Path) -> None:
    """Each metric of the alarms and of the dashboard is served, and the values are right."""
    process = site.broker(
        **METRICS,
        **{"offsets.topic.num.partitions": "1", "group.initial.rebalance.delay.ms": "0"},
        **{"log.flush.interval.messages": "1"},
    )
    use(site)
    samples = scrape(site)
    folder = repository / "examples" / "monitoring"
    named = {name for expr in expressions(folder) for name in NAME.findall(expr)}
    assert named - recorded(folder) - {name for name, *_ in samples} == set()
    assert len(named) > 25
    traffic = "kafka_server_brokertopicmetrics_"
    assert samples[f"{traffic}messagesin_total", "t"] == 3
    assert samples[f"{traffic}bytesin_total", "t"] == samples["kafka_log_log_size", "0", "t"]
    assert samples[f"{traffic}bytesout_total", "t"] >= samples[f"{traffic}bytesin_total", "t"]
    assert samples["kafka_topic_partition_current_offset", "0", "t"] == 3
    assert samples["kafka_consumergroup_current_offset", "g", "0", "t"] == 3
    assert samples["kafka_network_requestmetrics_totaltimems_count", "OffsetCommit"] == 1
    assert samples["kafka_log_logflushstats_logflushrateandtimems_count",] >= 1
    assert samples["kafka_controller_controllerstats_leaderelections_total",] == 2
    idle = "kafka_server_kafkarequesthandlerpool_requesthandleridle_seconds_total"
    assert 0 < samples[idle,] < scrape(site)[idle,]
    _fails_on_a_port_that_is_taken(site)
    status, _ = terminate(process)
    assert status == 0, site.log()
    assert site.lines() == []


def _fails_on_a_port_that_is_taken(site: Site) -> None:
    """Another broker whose metrics have no port ends with one line that names the setting."""
    taken = site.address(listener="METRICS")
    settings = {"broker.id": "2", "log.dirs": str(site.folder / "second")}
    process = site.broker("second", **settings, **{"faultline.metrics.listener": taken})
    assert process.wait(20) == 64, site.log("second")
    (line,) = site.lines("second")
    assert "faultline.metrics.listener: " in line
