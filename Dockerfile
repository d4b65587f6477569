# Two images from one file: `docker build --target sync-server .` and `docker build --target gateway .` (docker-compose.yml does both).
#
#   BASE  any Debian or Ubuntu with Node 24 and npm.
#
# A registry of one's own is passed with `--build-arg NPM_CONFIG_REGISTRY=…`; it is used while building and is not kept in the images.
# Few layers on purpose, the large ones last, and no BuildKit features: this also builds with the classic builder and on slow storage drivers.
ARG BASE=node:24-bookworm-slim

# ── everything that is built, once for both ─────────────────────────────────────────────────────────────────────────────────────────
FROM ${BASE} AS build
ARG NPM_CONFIG_REGISTRY
WORKDIR /build
COPY . .
# The app needs all packages; what runs needs its own only. What is optional there is a Node and a Postgres, which an image has from elsewhere.
RUN set -eu; \
    npm ci --ignore-scripts --no-audit --no-fund --loglevel=error; \
    node client/scripts/build.ts; \
    mkdir -p /out; \
    for part in sync-server gateway-node; do \
      mkdir "/out/$part"; \
      cp --parents package.json package-lock.json */package.json "/out/$part"; \
      ( cd "/out/$part"; \
        npm ci --workspace="$part" --workspace=shared --omit=dev --omit=optional --ignore-scripts --no-audit --no-fund --loglevel=error ); \
      cp -r --parents "$part" shared migrations "/out/$part"; \
    done; \
    cp -r --parents client/dist/client /out/sync-server; \
    cp -r --parents templates scripts/find-node.mjs /out/gateway-node; \
    rm -rf /build/* "$(npm config get cache)"

# ── the server: people, changes, the app ─────────────────────────────────────────────────────────────────────────────────────────────
FROM ${BASE} AS sync-server
ENV NODE_ENV=production HQ_HOME=/data HQ_HOST=0.0.0.0 HQ_PORT=3210
EXPOSE 3210
HEALTHCHECK --interval=10s --timeout=5s --start-period=60s --retries=6 \
  CMD ["node", "-e", "fetch(`http://127.0.0.1:${process.env.HQ_PORT}/v1/health`).then((r) => process.exit(r.ok ? 0 : 1), () => process.exit(1))"]
CMD ["node", "sync-server/main.ts"]
WORKDIR /app
RUN useradd --uid 10001 --create-home --shell /usr/sbin/nologin hq && install -d -o hq -g hq -m 0700 /data
USER hq
COPY --from=build /out/sync-server /app

# ── a gateway: runs agents, which work with git ──────────────────────────────────────────────────────────────────────────────────────
FROM ${BASE} AS gateway
ENV NODE_ENV=production HQ_HOME=/data HQ_GATEWAY_HOME=/data/gateway
CMD ["node", "gateway-node/main.ts"]
WORKDIR /app
RUN set -eu; \
    if ! command -v git >/dev/null; then \
      apt-get update -qq; \
      DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends git ca-certificates >/dev/null; \
      rm -rf /var/lib/apt/lists/*; \
    fi; \
    useradd --uid 10001 --create-home --shell /bin/sh hq; \
    install -d -o hq -g hq -m 0700 /data
USER hq
COPY --from=build /out/gateway-node /app
