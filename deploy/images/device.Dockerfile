# syntax=docker/dockerfile:1
# Tracker and device server: Python, grpcio, protobuf, the runtime and its sandboxed child; 70 MB
# above the base. From the root of the source tree:
#   docker build -f deploy/images/device.Dockerfile -t tilefarm-device:0.1.0 .
# Give BASE with a digest (debian@sha256:...) where builds must be the same for ever.
ARG BASE=debian:12.12-slim

FROM ${BASE} AS build
# Debian's own security updates are wanted, so its packages are not pinned.
# hadolint ignore=DL3008
RUN apt-get update \
 && apt-get install -y --no-install-recommends g++ python3 python3-venv \
 && rm -rf /var/lib/apt/lists/*
WORKDIR /source
COPY pyproject.toml ./
COPY deploy/device deploy/device
COPY deploy/locks deploy/locks
COPY device_server device_server
COPY proto proto
# Nothing is installed whose hash is not in a lock file.
RUN python3 -m venv --without-pip /opt/tilefarm \
 && python3 -m venv /opt/tools \
 && /opt/tools/bin/pip install --no-cache-dir --require-hashes -r deploy/locks/build.txt \
 && /opt/tools/bin/pip wheel --no-cache-dir --no-deps \
      --no-build-isolation --wheel-dir /wheels ./deploy/device \
 && /opt/tools/bin/pip --python /opt/tilefarm/bin/python install --no-cache-dir \
      --require-hashes -r deploy/locks/device.txt \
 && /opt/tools/bin/pip --python /opt/tilefarm/bin/python install --no-deps --no-index /wheels/*.whl

FROM ${BASE}
# hadolint ignore=DL3008
RUN apt-get update \
 && apt-get install -y --no-install-recommends python3 libstdc++6 \
 && rm -rf /var/lib/apt/lists/* \
 && useradd --uid 10001 --create-home --home-dir /var/lib/tilefarm tilefarm
COPY --from=build /opt/tilefarm /opt/tilefarm
ENV PATH=/opt/tilefarm/bin:$PATH \
    PYTHONUNBUFFERED=1 \
    TILEFARM_PORT=9190
USER 10001
WORKDIR /var/lib/tilefarm
VOLUME /var/lib/tilefarm
EXPOSE 9190 9191
HEALTHCHECK --interval=10s --timeout=3s --start-period=10s CMD ["python", "-c", \
  "import os, socket; socket.create_connection((socket.gethostname(), int(os.environ['TILEFARM_PORT'])), 2)"]
ENTRYPOINT ["python", "-m", "device_server"]
CMD ["--help"]
