# Licensed under the Apache License, Version 2.0 (the "License"); you may
# not use this file except in compliance with the License. You may obtain
# a copy of the License at
#
#     http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software
# distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the
# License for the specific language governing permissions and limitations
# under the License.
"""nova-preempt-manage verify."""

import argparse
import json
import time

from nova import context as nova_context
from nova import exception
from nova import objects
import nova.conf
from nova.scheduler.client import report

from nova_preempt import db
from nova_preempt.cloud import placement as placement_api
from nova_preempt.cloud import servers
from nova_preempt.cmd import engine
from nova_preempt.db import hints
from nova_preempt.db import schema
from nova_preempt.handover import audit

CONF = nova.conf.CONF


def add_parser(groups):
    parser = groups.add_parser(
        'verify', help='tell whether servers, allocations and decisions '
        'agree: 0 if they do, 1 if not, 2 if that cannot be told')
    parser.add_argument(
        '--wait', metavar='S', type=_seconds, default=10.0,
        help='seconds between two looks; only what both of them see is told '
             '(default: 10)')
    parser.add_argument('--json', action='store_true',
                        help='print one JSON object a line')
    parser.set_defaults(run=_verify, needs_nova=True)


def _seconds(text):
    try:
        seconds = float(text)
    except ValueError:
        seconds = -1
    if not 0 <= seconds < float('inf'):
        raise argparse.ArgumentTypeError(f'{text!r} is no time in seconds')
    return seconds


def _verify(args):
    problems = look(args.wait)
    for problem in problems:
        print(json.dumps(vars(problem), sort_keys=True) if args.json
              else f'{problem.kind}: {problem.text}')
    if not problems and not args.json:
        print('Servers, allocations and decisions agree.')
    return 1 if problems else 0


def look(wait_s):
    """The audit.Problems that are there now and wait_s seconds later."""
    database = db.Database(CONF)
    if schema.get_revision(database) != schema.latest_revision():
        raise exception.NovaException(
            'the tables are not those of this version; run '
            '"nova-preempt-manage db sync"')
    cells = engine.get_cells()
    _check_cells(cells)
    auditor = audit.Audit(
        placement_api.Placement(report.report_client_singleton),
        servers.ServerCache(lambda: cells,
                            lambda uuids: hints.get(database)),
        db.Decisions(database), lambda: cells,
        CONF.preemption.intent_timeout_s)
    first = set(auditor.look())
    if not first:
        return []
    time.sleep(wait_s)
    _check_cells(cells)
    return [problem for problem in auditor.look() if problem in first]


def _check_cells(cells):
    """Fail where a cell is away: its servers would seem not to exist."""
    if not cells:
        raise exception.NovaException('Nova has no cell')
    context = nova_context.get_admin_context()
    for cell in cells.values():
        with nova_context.target_cell(context, cell) as cell_context:
            objects.InstanceList.get_by_filters(
                cell_context, {'deleted': False}, limit=1, expected_attrs=[])
