# SPDX-License-Identifier: Apache-2.0
"""nova-preempt-manage verify: audits allocations, decisions and requests."""

import argparse
import json
import time

from nova import exception
import nova.conf
from nova.scheduler.client import report
from oslo_utils import timeutils

from nova_preempt import db
from nova_preempt.backlog import backlog_audit
from nova_preempt.backlog import server_reader
from nova_preempt.cloud import instances
from nova_preempt.cloud import keystone_trusts
from nova_preempt.cloud import placement_api
from nova_preempt.cloud import preemptible_server_cache
from nova_preempt.cmd import engine
from nova_preempt.db import preemptible_hints
from nova_preempt.handover import allocation_audit
from nova_preempt.handover import process_lease

CONF = nova.conf.CONF

KINDS = (
    allocation_audit.OPEN_DECISION, allocation_audit.NO_SPACE,
    allocation_audit.NO_ALLOCATION, allocation_audit.PART_OF_ALLOCATION,
    allocation_audit.NO_SERVER, allocation_audit.ENDED_MIGRATION,
    allocation_audit.OVER_CAPACITY, allocation_audit.BROKEN,
    backlog_audit.STATE, backlog_audit.DOUBLED, backlog_audit.NO_TRUST,
    backlog_audit.NO_REQUEST, backlog_audit.UNCLEARED, backlog_audit.BEGUN)


def add_parser(groups):
    parser = groups.add_parser(
        'verify', help='check that servers, allocations, decisions and '
        'requests agree; exit status 0: they do, 1: they do not, 2: error')
    parser.add_argument(
        '--wait', metavar='S', type=_seconds, default=10.0,
        help='seconds between two checks; only problems that both find are '
             'reported (default: 10)')
    parser.add_argument(
        '--without', action='append', default=[], choices=KINDS,
        help='omit problems of this kind; may be repeated')
    parser.add_argument('--json', action='store_true',
                        help='print one JSON object per line')
    parser.set_defaults(run=_verify, needs_nova=True)


def _seconds(text):
    try:
        seconds = float(text)
    except ValueError:
        seconds = -1
    if not 0 <= seconds < float('inf'):
        raise argparse.ArgumentTypeError(f'{text!r} must be 0 or more seconds')
    return seconds


def _verify(args):
    problems = [problem for problem in look(args.wait)
                if problem.kind not in args.without]
    for problem in problems:
        print(json.dumps(vars(problem), sort_keys=True) if args.json
              else f'{problem.kind}: {problem.text}')
    if not problems and not args.json:
        print('Servers, allocations, decisions and requests agree.')
    return 1 if problems else 0


def look(wait_s):
    """Return the problems that exist now and still wait_s seconds later."""
    database = db.Database(CONF)
    cells = engine.get_cells()
    _check_cells(cells)
    decisions = db.Decisions(database)
    auditors = [
        allocation_audit.Audit(
            placement_api.Placement(report.report_client_singleton),
            preemptible_server_cache.ServerCache(
                lambda: cells, lambda uuids: preemptible_hints.get(database)),
            decisions, lambda: cells, process_lease.INTENT_TIMEOUT_S,
            trees=True),
        backlog_audit.BacklogAudit(
            CONF.backlog, database, server_reader.ServerReader(decisions),
            keystone_trusts.Trusts(CONF), timeutils.utcnow)]
    first = {problem for item in auditors for problem in item.look()}
    if not first:
        return []
    # The engine must have had a pass over requests meanwhile, too.
    time.sleep(max(wait_s, 2 * CONF.backlog.pass_interval_s)
               if wait_s and any(item.kind == backlog_audit.STATE
                                 for item in first) else wait_s)
    _check_cells(cells)
    return sorted(problem for item in auditors for problem in item.look()
                  if problem in first)


def _check_cells(cells):
    """Fail if a cell is down: its servers would seem not to exist."""
    if not cells:
        raise exception.NovaException('Nova has no cell')
    for cell in cells.values():
        instances.check(cell)
