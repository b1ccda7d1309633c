# SPDX-License-Identifier: Apache-2.0
"""Checks the URL of a webhook, and resolves the name of its host."""

import concurrent.futures
import socket

from nova_preempt import exceptions
from nova_preempt.core import webhook_targets

OPTION = '[preemption_api]webhook_targets'

#: The longest wait for the addresses of a host, in seconds.
RESOLVE_S = 5


def load_rules(conf):
    """Return the core webhook_targets.Rules that the operator has set.

    :raises InvalidConfiguration:
    """
    try:
        return webhook_targets.parse_rules(conf.preemption_api.webhook_targets)
    except ValueError as exc:
        raise exceptions.InvalidConfiguration(f'{OPTION}: {exc}.') from None


def resolve(host, port):
    """Return the addresses of a host, as texts.

    :raises OSError: there are none, or no name server answers in time
    """
    # NOTE: getaddrinfo() has no time limit: its thread ends later.
    found = concurrent.futures.ThreadPoolExecutor(1).submit(
        socket.getaddrinfo, host, port).result(RESOLVE_S)
    return list(dict.fromkeys(address[0] for *_kind, address in found))


def find(url, rules, resolve=resolve):
    """Return (Target, the addresses that may be called) of a URL.

    A caller has to connect to one of these addresses: another query of the
    name may have another answer.

    :raises Refused: also if only some of the addresses may not be called
    """
    target = webhook_targets.parse_url(url, rules)
    try:
        addresses = resolve(target.host, target.port)
    except (OSError, UnicodeError):
        raise webhook_targets.Refused(
            f'its host name cannot be resolved in {RESOLVE_S} s') from None
    for address in addresses:
        webhook_targets.check_address(address, rules)
    return target, addresses
