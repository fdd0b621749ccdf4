# syntax=docker/dockerfile:1
# The command line, compile workers and Ray's nodes: everything that tilefarm needs.
# From the root of the source tree:
#   docker build -f deploy/images/driver.Dockerfile -t tilefarm:0.1.0 .
# Give BASE with a digest (debian@sha256:...) where builds must be the same for ever.
ARG BASE=debian:12.12-slim

FROM ${BASE} AS build
# Debian's own security updates are wanted, so its packages are not pinned.
# hadolint ignore=DL3008
RUN apt-get update \
 && apt-get install -y --no-install-recommends g++ python3 python3-venv \
 && rm -rf /var/lib/apt/lists/*
WORKDIR /source
COPY LICENSE README.md pyproject.toml ./
COPY deploy/locks deploy/locks
COPY compile_worker compile_worker
COPY device_server device_server
COPY driver driver
COPY proto proto
COPY tuner tuner
# Nothing is installed whose hash is not in a lock file.
RUN python3 -m venv --without-pip /opt/tilefarm \
 && python3 -m venv /opt/tools \
 && /opt/tools/bin/pip install --no-cache-dir --require-hashes -r deploy/locks/build.txt \
 && /opt/tools/bin/pip wheel --no-cache-dir --no-deps \
      --no-build-isolation --wheel-dir /wheels . \
 && /opt/tools/bin/pip --python /opt/tilefarm/bin/python install --no-cache-dir \
      --require-hashes -r deploy/locks/driver.txt \
 && /opt/tools/bin/pip --python /opt/tilefarm/bin/python install --no-deps --no-index /wheels/*.whl

FROM ${BASE}
# procps and wget are what KubeRay's probes of Ray's nodes call.
# hadolint ignore=DL3008
RUN apt-get update \
 && apt-get install -y --no-install-recommends libstdc++6 procps python3 wget \
 && rm -rf /var/lib/apt/lists/* \
 && useradd --uid 10001 --create-home --home-dir /var/lib/tilefarm tilefarm
COPY --from=build /opt/tilefarm /opt/tilefarm
ENV PATH=/opt/tilefarm/bin:$PATH \
    PYTHONUNBUFFERED=1 \
    RAY_USAGE_STATS_ENABLED=0
USER 10001
WORKDIR /var/lib/tilefarm
VOLUME /var/lib/tilefarm
HEALTHCHECK NONE
ENTRYPOINT ["tilefarm"]
CMD ["--help"]
