"""Machines as network namespaces. Each has two links of its own to this one: over the first it
reaches the database and nothing else, over the second people, Feishu and the model."""

from __future__ import annotations

import contextlib
import os
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Namespace:
    """One machine's network; `number` from 1."""

    number: int

    @property
    def name(self) -> str:
        return f"bot{os.getpid()}m{self.number}"

    @property
    def database_host(self) -> str:
        """This machine, as that one sees it over the first link."""
        return f"10.201.{self.number}.1"

    @property
    def outside_host(self) -> str:
        return f"10.202.{self.number}.1"

    @property
    def own_host(self) -> str:
        """That machine, as this one sees it over the second link."""
        return f"10.202.{self.number}.2"

    def command(self, *arguments: str) -> list[str]:
        """What runs `arguments` in it."""
        return ["ip", "netns", "exec", self.name, *arguments]

    def cut(self, *links: str) -> None:
        """Takes links down ("database", "outside"): packets vanish, nobody is told."""
        for link in links:
            _ip("link", "set", self._link(link), "down")

    def mend(self) -> None:
        for link in ("database", "outside"):
            _ip("link", "set", self._link(link), "up")

    def make(self) -> None:
        _ip("netns", "add", self.name)
        _ip("-n", self.name, "link", "set", "lo", "up")
        for link, net in (("database", 201), ("outside", 202)):
            there = f"{link[:4]}0"
            _ip("link", "add", self._link(link), "type", "veth", "peer", "name", there,
                "netns", self.name)  # fmt: skip
            _ip("addr", "add", f"10.{net}.{self.number}.1/24", "dev", self._link(link))
            _ip("-n", self.name, "addr", "add", f"10.{net}.{self.number}.2/24", "dev", there)
            _ip("link", "set", self._link(link), "up")
            _ip("-n", self.name, "link", "set", there, "up")

    def remove(self) -> None:
        _ip("netns", "del", self.name)

    def _link(self, link: str) -> str:
        return f"{link[0]}{self.number}b{os.getpid()}"


@contextlib.contextmanager
def namespaces(count: int) -> Iterator[list[Namespace]]:
    """So many, gone afterwards. Raises `CalledProcessError` where this user may not make any."""
    made: list[Namespace] = []
    try:
        for number in range(1, count + 1):
            one = Namespace(number)
            one.make()
            made.append(one)
        yield made
    finally:
        for one in made:
            one.remove()


def _ip(*arguments: str) -> None:
    subprocess.run(["ip", *arguments], check=True, capture_output=True)
