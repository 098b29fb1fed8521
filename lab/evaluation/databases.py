"""Databases of evaluations."""

from __future__ import annotations

import psycopg

from memory import migrations


def fresh_database(server: str, name: str) -> str:
    """A migrated database `name` on `server`; one of that name is replaced."""
    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute(f"drop database if exists {name} with (force)".encode())
        connection.execute(f"create database {name}".encode())
    url = server.replace("/postgres?", f"/{name}?")
    migrations.apply(url)
    return url
