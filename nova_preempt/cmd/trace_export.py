# SPDX-License-Identifier: Apache-2.0
"""nova-preempt-manage trace export: writes Nova's records as a trace."""

import collections
import contextlib
import dataclasses
import datetime
import json
import sys

import nova.conf
from nova.scheduler.client import report

from nova_preempt import db
from nova_preempt.cloud import extra_specs
from nova_preempt.cloud import host_records
from nova_preempt.cloud import instances
from nova_preempt.cloud import placement_api
from nova_preempt.cmd import arguments
from nova_preempt.cmd import engine
from nova_preempt.cmd import purge
from nova_preempt.core import headroom_account
from nova_preempt.db import preemptible_hints
from nova_preempt.simulator.traces import native_format
from nova_preempt.simulator.traces import trace_model

CONF = nova.conf.CONF

_MICROSECOND = datetime.timedelta(microseconds=1)


def add_parsers(groups):
    commands = arguments.add_group(
        groups, 'trace', 'traces for nova-preempt-simulate')
    parser = commands.add_parser(
        'export', help='write servers that Nova has recorded, including '
                       'deleted ones, as a trace for nova-preempt-simulate',
        description='The trace has numbers instead of the UUIDs of servers '
                    'and projects, and no names.')
    parser.add_argument('--output', metavar='F',
                        help='file of the trace, a JSON object per line; '
                             'default: standard output')
    parser.add_argument('--cloud', metavar='F',
                        help='file for the current hosts and the classes of '
                             'the trace')
    parser.add_argument(
        '--since', metavar='DATE', type=purge.date,
        help='begin of the trace in UTC, such as 2026-01-31 or '
             '2026-01-31T12:00:00; servers that exist then are requested at '
             'the begin; default: the first record')
    parser.add_argument('--until', metavar='DATE', type=purge.date,
                        help='omit servers requested after this date')
    parser.set_defaults(run=_export, needs_nova=True)


def _export(args):
    cells = engine.get_cells()
    export = TraceExporter(args.since, args.until, _hinted())
    with contextlib.ExitStack() as stack:
        stream = sys.stdout
        if args.output:
            stream = stack.enter_context(
                open(args.output, 'w', encoding='utf-8'))
        count = native_format.write(stream,
                                    export.events(instances.recorded(cells)))
    if args.cloud:
        _write_cloud(args.cloud, cells, export)
    print(f'{count} servers are written; {export.never_ran} that have never '
          'run are omitted.', file=sys.stderr)
    return 0


def _hinted():
    """Return the uuids of servers that are preemptible by a hint."""
    return frozenset(preemptible_hints.get(db.Database(CONF)))


class TraceExporter:
    """Makes the events of a trace.

    :param hinted: uuids of servers that are preemptible by a hint
    :ivar never_ran: number of omitted servers that never ran, whose run time
        is unknown
    :ivar classes: {name: the extra specs of its servers}
    """

    def __init__(self, since=None, until=None, hinted=frozenset()):
        self.never_ran = 0
        self.classes = {}
        self._begin = since
        self._until = until
        self._hinted = hinted
        self._names = {}
        self._projects = {}
        self._count = 0

    def events(self, servers):
        """Yield a trace_model.Boot for each server, in order of creation."""
        for server in servers:
            if self._begin is None:
                self._begin = server.created_at
            if self._until is not None and server.created_at > self._until:
                return
            if server.launched_at is None:
                self.never_ran += 1
            elif server.ended_at is None or server.ended_at > self._begin:
                yield self._boot(server)

    def _boot(self, server):
        self._count += 1
        duration_us = None
        if server.ended_at is not None:
            # Only the run time since the beginning counts.
            ran = server.ended_at - max(server.launched_at, self._begin)
            duration_us = max(0, ran // _MICROSECOND)
        at_us = (max(server.created_at, self._begin)
                 - self._begin) // _MICROSECOND
        project = self._projects.setdefault(
            server.project_id, f'p{len(self._projects) + 1}')
        return trace_model.Boot(at_us, f's{self._count}', server.resources, '',
                                self._class(server), duration_us, project)

    def _class(self, server):
        if not (server.uuid in self._hinted
                or extra_specs.flavor_is_preemptible(server.extra_specs)):
            return 'normal'
        specs = {name: value for name, value in server.extra_specs.items()
                 if name.partition(':')[0] == extra_specs.NAMESPACE}
        # Blazar's flavors and hints lack it.
        specs[extra_specs.ENABLED] = 'true'
        key = tuple(sorted(specs.items()))
        if key not in self._names:
            number = len(self._names) + 1
            name = 'preemptible' + (f'-{number}' if number > 1 else '')
            self._names[key] = name
            self.classes[name] = dict(key)
        return self._names[key]


def _write_cloud(path, cells, export):
    placement = placement_api.Placement(report.report_client_singleton)
    names = set().union(*(
        host_records.list_nodes(cell) for cell in cells.values()))
    trees = collections.defaultdict(list)
    for item in placement.list_all_providers(()):
        trees[item.root_uuid].append(item)
    found = [_read_tree(placement, root, tree) for uuid, tree in trees.items()
             for root in tree if root.uuid == uuid and root.name in names]
    cloud = describe((provider.inventories for provider in found
                      if provider is not None), export.classes)
    with open(path, 'w', encoding='utf-8') as stream:
        # JSON is valid YAML.
        json.dump(cloud, stream, indent=2)
        stream.write('\n')


def _read_tree(placement, root, providers):
    """Return a core Provider with the sums of a tree, None if gone."""
    states = [placement.get_provider_state(item.uuid) for item in sorted(
        providers, key=lambda item: (item.uuid != root.uuid, item.uuid))]
    if states[0] is None:
        return None
    return headroom_account.merge_tree([
        dataclasses.replace(state, parent_uuid=root.uuid) if number else state
        for number, state in enumerate(states) if state is not None])


def describe(inventories, classes):
    """Return the content of a cloud file, see doc/source/simulating.rst.

    :param inventories: {resource class: Inventory} of each host
    :param classes: {name: extra specs}
    """
    kinds = {}
    for each in inventories:
        key = tuple((name, item.total, item.reserved, item.allocation_ratio)
                    for name, item in sorted(each.items()) if item.total)
        if key:
            kinds[key] = kinds.get(key, 0) + 1
    return {
        'hosts': [{
            'name': f'host{number}', 'count': count,
            'resources': {name: total for name, total, _, _ in key},
            'reserved': {name: reserved for name, _, reserved, _ in key
                         if reserved},
            'allocation_ratios': {name: ratio for name, _, _, ratio in key
                                  if ratio != 1.0},
        } for number, (key, count) in enumerate(sorted(kinds.items()), 1)],
        'classes': {name: {'extra_specs': specs}
                    for name, specs in sorted(classes.items())},}
