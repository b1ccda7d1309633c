# SPDX-License-Identifier: Apache-2.0
"""Answers what the API asks of the engine about hosts."""

import oslo_messaging as messaging

from nova_preempt import exceptions
from nova_preempt import rpc
from nova_preempt.cloud import nova_contexts


class HostInventoryEndpoint:
    """An RPC endpoint; see rpc.EngineClient for what it answers.

    Every engine serves it, also those that do not act.

    :param inventory: a nova_preempt.reservation.host_inventory.Inventory
    """

    target = messaging.Target(namespace=rpc.INVENTORY, version='1.0')

    def __init__(self, inventory):
        self._inventory = inventory

    def ping(self, context):
        """Shows whoever asks that messages get here."""

    @messaging.expected_exceptions(exceptions.PreemptError)
    def find_hosts(self, context, host_properties):
        return self._inventory.find_hosts(host_properties)

    def list_properties(self, context):
        return self._inventory.list_properties()

    def list_hosts(self, context):
        return self._inventory.list_hosts()


def why_blind(client, server):
    """Return why this engine cannot tell that hosts are down, '' if it can.

    Computes report over the message bus. An engine that does not reach itself
    there cannot tell a host that is down from a bus that is.

    :param client: an rpc.EngineClient
    :param server: the name under which this engine answers
    """
    try:
        client.ping(nova_contexts.admin(), server)
    except exceptions.NoAnswer as exc:
        return ('this engine does not reach itself over the message bus '
                f'({exc})')
    return ''
