# SPDX-License-Identifier: Apache-2.0
"""Decides to which URLs and addresses webhooks may be sent.

A user chooses the URL, and a service inside the cloud's network calls it: no
address may be called that users cannot reach themselves.
"""

from collections.abc import Iterable
import dataclasses
import ipaddress
import re
import urllib.parse

Network = ipaddress.IPv4Network | ipaddress.IPv6Network

_DEFAULT_PORTS = {"https": 443, "http": 80}

# IANA's special-purpose registries, written down: what Python's is_global says
# differs between its releases.
_NOT_PUBLIC = tuple(
    ipaddress.ip_network(text) for text in (
        "0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8",
        "169.254.0.0/16", "172.16.0.0/12", "192.0.0.0/24", "192.0.2.0/24",
        "192.88.99.0/24", "192.168.0.0/16", "198.18.0.0/15",
        "198.51.100.0/24", "203.0.113.0/24",
        # Multicast, reserved and broadcast.
        "224.0.0.0/3",
        # IETF protocols and Teredo, documentation, 6to4.
        "2001::/23", "2001:db8::/32", "2002::/16", "3fff::/20"))
# All others, such as mapped IPv4 addresses and NAT64, are outside of it.
_PUBLIC_V6 = ipaddress.ip_network("2000::/3")

_PLAIN = re.compile(r"[!-~]+")
_LABEL = r"[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?"
_NAME = re.compile(rf"(?=.{{1,253}}\Z){_LABEL}(?:\.{_LABEL})*")
# Resolvers read such names as IPv4 addresses: 2130706433, 0x7f.1, 0177.0.0.1.
_NUMBER = re.compile(r"(?:.*\.)?(?:\d+|0x[0-9a-f]*)")


class Refused(ValueError):
    """The URL or its address may not be called; the text says why."""


@dataclasses.dataclass(frozen=True)
class Rules:
    """The ports and networks that the operator lets webhooks call.

    :ivar ports: (scheme, port) that may be called; none if webhooks are off
    :ivar refused: public networks that may not be called
    :ivar allowed: networks that may be called though they are not public
    """

    ports: frozenset[tuple[str, int]] = frozenset()
    refused: tuple[Network, ...] = ()
    allowed: tuple[Network, ...] = ()


@dataclasses.dataclass(frozen=True)
class Target:
    """The parts of a URL; the path includes the query."""

    scheme: str
    host: str
    port: int
    path: str

    @property
    def authority(self) -> str:
        """Return host and port as the header Host has them."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return (host if self.port == _DEFAULT_PORTS[self.scheme]
                else f"{host}:{self.port}")


def parse_rules(entries: Iterable[str]) -> Rules:
    """Return the rules that entries state.

    :param entries: "https:443" allows a scheme and port, "-192.0.2.0/24"
        refuses a network, "+10.1.0.0/16" allows one that is not public
    :raises ValueError: the text names an entry that is none of these
    """
    ports = set()
    networks: dict[str, list[Network]] = {"-": [], "+": []}
    for entry in entries:
        try:
            if entry[:1] in networks:
                networks[entry[0]].append(ipaddress.ip_network(entry[1:]))
                continue
        except ValueError:
            pass
        scheme, _, port = entry.partition(":")
        if scheme not in _DEFAULT_PORTS or not (
                port.isdecimal() and 0 < int(port) < 65536):
            raise ValueError(f"{entry!r} is neither like https:443 nor like "
                             "-192.0.2.0/24 or +10.1.0.0/16")
        ports.add((scheme, int(port)))
    return Rules(frozenset(ports), tuple(networks["-"]), tuple(networks["+"]))


def parse_url(url: str, rules: Rules) -> Target:
    """Return the parts of a URL.

    The addresses of its host have to be checked with check_address() as well.

    :raises Refused: the text does not quote the URL, which may be secret
    """
    if not _PLAIN.fullmatch(url) or "\\" in url:
        raise Refused("it must have ASCII characters without spaces and "
                      "backslashes only; write other names of hosts as xn--")
    try:
        parts = urllib.parse.urlsplit(url)
        port = parts.port
    except ValueError:
        raise Refused("it is not a valid URL") from None
    host = parts.hostname or ""
    if parts.scheme not in _DEFAULT_PORTS:
        raise Refused("it must begin with https://")
    if "@" in parts.netloc:
        raise Refused("it must have no user and no password")
    if "#" in url:
        raise Refused("it must have no fragment (#)")
    port = _DEFAULT_PORTS[parts.scheme] if port is None else port
    if (parts.scheme, port) not in rules.ports:
        known = ", ".join(f"{scheme} at port {number}"
                          for scheme, number in sorted(rules.ports))
        raise Refused(f"the operator allows {known or 'no webhooks'}")
    _check_host(host, rules, is_bracketed="[" in parts.netloc)
    path = urllib.parse.urlunsplit(("", "", parts.path or "/", parts.query,
                                    ""))
    if not path.startswith("/") or path.startswith("//"):
        raise Refused("its path must begin with one slash")
    return Target(parts.scheme, host, port, path)


def _check_host(host: str, rules: Rules, is_bracketed: bool) -> None:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        is_address = False
    else:
        is_address = "%" not in host
    if is_address:
        check_address(host, rules)
    elif is_bracketed or not _NAME.fullmatch(host) or _NUMBER.fullmatch(host):
        raise Refused("its host must be a name, an IPv4 address with four "
                      "decimal numbers, or an IPv6 address in brackets")


def check_address(address: str, rules: Rules) -> None:
    """Check an address that the name of a host stands for.

    :raises Refused:
    """
    found = ipaddress.ip_address(address)
    if any(found in network for network in rules.refused):
        raise Refused("the operator refuses the network of its address")
    if any(found in network for network in rules.allowed):
        return
    if any(found in network for network in _NOT_PUBLIC) or (
            found.version == 6 and found not in _PUBLIC_V6):
        raise Refused("its address is not public")


def origin(url: str) -> str:
    """Return scheme and host of a URL, whose path may be secret."""
    return "/".join(url.split("/", 3)[:3]).rpartition("@")[2][:300]
