# SPDX-License-Identifier: Apache-2.0
"""Reads compute hosts from Nova's databases, and their use from Placement."""

import dataclasses
import time

from oslo_log import log as logging

from nova_preempt.cloud import cell_reader
from nova_preempt.cloud import host_records
from nova_preempt.core.energy import power_steps

LOG = logging.getLogger(__name__)

REASON = power_steps.REASON

#: The key of an aggregate's metadata with how many of its hosts stay on.
MINIMUM = 'preemptible:minimum_hosts'


class CellsUnreadable(Exception):
    """Some cells cannot be read; the message names them."""


class ComputeHosts:
    """Reads compute hosts.

    :param placement: a nova_preempt.cloud.placement_api.Placement
    :param get_cells: returns {uuid: CellMapping} of the cells to look into
    :param monotonic: returns seconds of a clock that is never set
    :param readings: see nova_preempt.cloud.cell_reader.CellReader
    """

    def __init__(self, placement, get_cells, monotonic=time.monotonic,
                 readings=cell_reader.CellReader):
        self._monotonic = monotonic
        self._read = None, None
        self._readings = readings(
            get_cells, self._read_cell, monotonic=monotonic,
            consequence='its hosts are powered neither on nor off until then')
        self._of_cell = {}        # uuid: [ComputeHost], without aggregates
        self._placement = placement
        self._get_cells = get_cells

    def read(self, max_age_s=0, partly=False):
        """Return {name: ComputeHost} of all cells.

        Hosts of several nodes, as of Ironic, are omitted, as powering a node
        off does not power a host off.

        :param max_age_s: how old the hosts may be, in seconds
        :param partly: whether to omit cells that cannot be read
        :raises CellsUnreadable: there are such cells, whose hosts a decision
            needs
        """
        read_at, found = self._read
        if found is not None and (self._monotonic() - read_at < max_age_s):
            return found
        read_at = self._monotonic()
        found, whole = self._read_all(partly)
        if whole:
            self._read = read_at, found
        return found

    def _read_all(self, partly):
        """Return (hosts by name, whether all cells were read)."""
        aggregates = {}
        for aggregate in host_records.list_aggregates():
            for host in aggregate.hosts:
                aggregates.setdefault(host, set()).add(aggregate.name)
        self._readings.read()
        mappings, away = self._get_cells(), self._readings.unreadable()
        if away and not partly:
            raise CellsUnreadable('Cannot read ' + ', '.join(sorted(
                f'cell {mappings[uuid].identity}' if uuid in mappings
                else uuid for uuid in away)))
        return {
            host.name: dataclasses.replace(host, aggregates=frozenset(
                aggregates.get(host.host, ())))
            for uuid in mappings.keys() - away
            for host in self._of_cell.get(uuid, ())}, not away

    def minimums(self, default):
        """Return {aggregate: the least number of its hosts that stay on}.

        :param default: of aggregates without metadata
        """
        found = {}
        for aggregate in host_records.list_aggregates():
            text = aggregate.metadata.get(MINIMUM, str(default))
            if not text.isdecimal():
                LOG.error('Aggregate %(name)s, %(key)s: %(text)r is not a '
                          'number of hosts',
                          {'name': aggregate.name, 'key': MINIMUM,
                           'text': text})
                text = str(default)
            found[aggregate.name] = int(text)
        return found

    def _read_cell(self, context, cell):
        self._of_cell[cell.uuid] = host_records.read_hosts(context, cell.uuid)

    def reread(self, host):
        """Return a ComputeHost with its current service."""
        return host_records.reread(self._get_cells()[host.cell_uuid], host)

    def tokens(self):
        """Return {uuid of a root: a token that allocations below change}."""
        found = {}
        for provider in self._placement.list_all_providers([]):
            found.setdefault(provider.root_uuid, []).append(
                (provider.uuid, provider.generation))
        return found

    def is_empty(self, host):
        """Return whether nothing uses a ComputeHost, or is on the way."""
        return power_steps.is_empty(self.occupants(host))

    def occupants(self, host):
        """Return the power_steps.Occupants of a ComputeHost, read now."""
        consumers = self._placement.get_consumers_in_tree(host.provider_uuid)
        return power_steps.Occupants(frozenset(consumers),
            *host_records.users(self._get_cells()[host.cell_uuid], host))
