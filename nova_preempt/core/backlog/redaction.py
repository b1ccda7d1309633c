# SPDX-License-Identifier: Apache-2.0

"""Redacts and shortens a server's request body, and texts about it."""

from collections.abc import Iterator, Mapping
import json
from typing import Any

from nova_preempt.core import credential_masking
from nova_preempt.core.backlog import request_checks
from nova_preempt.core.backlog import reservation_rules
from nova_preempt.core.reservation import reservation_model

#: Members of "server" that may hold secrets: Nova shows them only to the
#: server itself.
SECRET = ("adminPass", "user_data", "personality")

# Members of "server" that a log may quote; users put what they like into
# metadata, tags and hints.
_PLAIN = {
    **dict.fromkeys((
        "name", "imageRef", "flavorRef", "key_name", "availability_zone",
        "host", "hypervisor_hostname"), str),
    "min_count": int, "max_count": int}


# Members of "server", and hints, that a pass reads.
_PLACED = ("imageRef", "availability_zone", "host", "hypervisor_hostname")
_HINTS = ("group", reservation_model.HINT)
# The longest quotation of Nova's message.
_MAX_SAID = 2000
_BOOT_VOLUME = ({"boot_index": 0, "destination_type": "volume"},)


def secrets(body: Mapping[str, Any]) -> dict[str, Any]:
    """Return the secret members of "server" in Nova's body of POST /servers.
    """
    server = body["server"]
    return {name: server[name] for name in SECRET if name in server}


def without_secrets(body: Mapping[str, Any]) -> dict[str, Any]:
    """Return the body with its secret members masked."""
    return {
        **body,
        "server": {
            name: credential_masking.MASK if name in SECRET else value
            for name, value in body["server"].items()
        },
    }


def for_closed_request(body: Mapping[str, Any]) -> dict[str, Any]:
    """Return the part of the body that is kept once the request is closed."""
    return {"server": {
        name: value
        for name, value in without_secrets(body)["server"].items()
        if name in SECRET or _is_plain(name, value)}}


def for_pass(body: Mapping[str, Any]) -> dict[str, Any]:
    """Return the part of a body, which may be large, that a pass reads.

    Of hints that a pass does not know only their presence is kept.
    """
    server = body["server"]
    found = {name: server[name] for name in _PLACED if name in server}
    if request_checks.starts_from_volume(server):
        found["block_device_mapping_v2"] = list(_BOOT_VOLUME)
    hints = {}
    for name in reservation_rules.HINTS:
        given = body.get(name)
        if isinstance(given, Mapping) and given:
            hints[name] = {hint: given[hint] for hint in _HINTS
                           if hint in given}
            if given.keys() - hints[name].keys():
                hints[name]["other"] = True
    return {"server": found, **hints}


def _is_plain(name: str, value: object) -> bool:
    return name in _PLAIN and isinstance(value, _PLAIN[name])


def for_log(body: object) -> object:
    """Return the body for a log, with everything masked that may be secret.

    The body may be malformed in any way.
    """
    if not isinstance(body, Mapping):
        return credential_masking.MASK
    shown: dict[str, object] = dict.fromkeys(body, credential_masking.MASK)
    server = body.get("server")
    if isinstance(server, Mapping):
        shown["server"] = {
            name: value if _is_plain(name, value) else credential_masking.MASK
            for name, value in server.items()}
    return shown


def redacted(text: str, found: Mapping[str, Any]) -> str:
    """Return Nova's message about a body on one line, with secrets masked.

    Nova's errors quote the value that they are about, which may be longer than
    its database column.

    :param found: the secrets of the body
    """
    spellings = {
        spelling
        for secret in _texts(found)
        for spelling in (secret, repr(secret)[1:-1], json.dumps(secret)[1:-1])
        if spelling}
    for spelling in sorted(spellings, key=len, reverse=True):
        text = text.replace(spelling, credential_masking.MASK)
    text = " ".join(text.split())
    return text if len(text) <= _MAX_SAID else f"{text[:_MAX_SAID]}..."


def _texts(value: object) -> Iterator[str]:
    """Iterate over the texts and numbers in a JSON value."""
    if isinstance(value, Mapping):
        value = list(value.values())
    if isinstance(value, list | tuple):
        for item in value:
            yield from _texts(item)
    elif value is not None and not isinstance(value, bool):
        yield str(value)
