# Two images: `node` is a broker or a ZooKeeper server, `toxiproxy` is the network between them.
# Any builder will do, with or without BuildKit. `make image` hands in wheels and a toxiproxy-server
# (containers/wheels, containers/program), so that nothing is fetched; a bare build fetches both.

ARG BASE=python:3.11-slim-bookworm
ARG TOXIPROXY=ghcr.io/shopify/toxiproxy:2.12.0

FROM ${BASE} AS packages
LABEL faultline=image
USER root
COPY containers/requirements.txt containers/wheel* /wheels/
RUN set -eu; mkdir -p /opt/faultline; \
    if ls /wheels/*.whl >/dev/null 2>&1; then \
        for wheel in /wheels/*.whl; do python3 -m zipfile -e "$wheel" /opt/faultline; done; \
    else \
        python3 -m pip install --no-cache-dir --no-compile --only-binary :all: --require-hashes \
            --target /opt/faultline --requirement /wheels/requirements.txt; \
    fi; \
    python3 -m compileall -q --invalidation-mode unchecked-hash /opt/faultline
COPY broker_impl/ /opt/faultline/broker_impl/
# Whoever checked the sources out may have kept them to himself; not every builder has COPY --chmod.
RUN python3 -m compileall -q --invalidation-mode unchecked-hash /opt/faultline/broker_impl; \
    chmod -R a+rX /opt/faultline

FROM ${BASE} AS node
LABEL faultline=image \
      org.opencontainers.image.title="faultline-node" \
      org.opencontainers.image.description="A broker that speaks Kafka's protocol, or its ZooKeeper" \
      org.opencontainers.image.licenses="Apache-2.0"
USER root
RUN set -eu; \
    if ! command -v nft >/dev/null; then \
        apt-get update; \
        apt-get install --yes --no-install-recommends nftables; \
        rm -rf /var/lib/apt/lists/* /var/cache/apt/*; \
    fi; \
    groupadd --gid 10001 faultline; \
    useradd --uid 10001 --gid 10001 --no-create-home --home-dir /data --shell /usr/sbin/nologin faultline; \
    install --directory --owner=10001 --group=10001 /data
COPY --from=packages /opt/faultline /opt/faultline
ENV PYTHONPATH=/opt/faultline PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1 \
    FAULTLINE_HEALTH=kafka://127.0.0.1:9092
USER 10001:10001
WORKDIR /
# What the image cannot run it fails to build.
RUN python3 -m broker_impl --help >/dev/null && python3 -m broker_impl.zookeeper --help >/dev/null
HEALTHCHECK --interval=10s --timeout=5s --start-period=30s --retries=3 \
    CMD ["python3", "-m", "broker_impl.health"]
ENTRYPOINT []
CMD ["python3", "-m", "broker_impl", "--help"]

FROM ${TOXIPROXY} AS program
COPY containers/requirements.txt containers/progra* /

FROM ${BASE} AS toxiproxy
LABEL faultline=image \
      org.opencontainers.image.title="faultline-toxiproxy" \
      org.opencontainers.image.description="Toxiproxy's server as Faultline's network" \
      org.opencontainers.image.licenses="MIT"
COPY --from=program /toxiproxy /usr/local/bin/toxiproxy-server
# The links of docker-compose.yml, which alone asks for them.
COPY containers/toxiproxy.json /etc/toxiproxy.json
USER root
RUN chmod a+r /etc/toxiproxy.json && chmod a+rx /usr/local/bin/toxiproxy-server
USER 10001:10001
WORKDIR /
RUN ["/usr/local/bin/toxiproxy-server", "-version"]
HEALTHCHECK --interval=10s --timeout=5s --start-period=10s --retries=3 \
    CMD ["python3", "-c", "import socket; socket.create_connection(('127.0.0.1', 8474), 3)"]
ENTRYPOINT ["/usr/local/bin/toxiproxy-server"]
CMD ["-host=0.0.0.0"]
