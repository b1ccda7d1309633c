# SPDX-License-Identifier: Apache-2.0
"""nova-preempt-manage hand-back: prepares the return to nova-scheduler."""

from nova import exception
import nova.conf
from nova.scheduler.client import report

from nova_preempt import db
from nova_preempt import exceptions
from nova_preempt.cloud import nova_api
from nova_preempt.cloud import placement_api
from nova_preempt.cloud import preemptible_server_cache
from nova_preempt.cmd import engine
from nova_preempt.db import pauses
from nova_preempt.db import preemptible_hints
from nova_preempt.handover import release_all
from nova_preempt.power import compute_hosts

CONF = nova.conf.CONF


def add_parser(groups):
    parser = groups.add_parser(
        'hand-back', help='list the stopped or shelved victims, hosts and '
        'allocations that only nova_preempt would restore, and restore them; '
        'exit status 0: none is left, 1: some are left, 2: error')
    parser.add_argument('--apply', action='store_true',
                        help='restore them instead of listing them')
    parser.add_argument('--start', action='store_true',
                        help='start the servers that were stopped as '
                             'victims; by default they are unlocked and '
                             'remain stopped')
    parser.set_defaults(run=_hand_back, needs_nova=True)


def _hand_back(args):
    if not nova_api.NovaAPI.is_configured(CONF):
        raise exceptions.InvalidConfiguration(
            '[preemption]auth_type is not set; Nova cannot be called')
    database = db.Database(CONF)
    if args.apply and not set(pauses.ALL) <= set(pauses.get(database)):
        raise exception.Invalid(
            'schedulers and engines are not paused and would undo this; run '
            '"nova-preempt-manage pause --reason ..." first')
    return run(make(database, args.start), args.apply)


def make(database, start):
    """Return the HandBack for the current state of the cloud."""
    cells = engine.get_cells()
    placement = placement_api.Placement(report.report_client_singleton)
    servers = preemptible_server_cache.ServerCache(
        lambda: cells, lambda uuids: preemptible_hints.get(database))
    servers.refresh()
    hosts = compute_hosts.ComputeHosts(placement, lambda: cells).read()
    return release_all.ReleaseAll(
        db.Decisions(database), nova_api.NovaAPI(CONF), placement,
        hosts.values(), servers.servers(),
        CONF.preemption_quota.allocation_project_id, start)


def run(everything, apply):
    """Print, or apply, each step; return the exit status."""
    left = 0
    for step in everything.steps():
        if not apply:
            print(step.text)
            left += 1
            continue
        problem = release_all.run_step(step)
        print(f'left: {problem}' if problem else f'done: {step.text}')
        left += bool(problem)
    if not left:
        print('Nothing is left that only nova_preempt would restore.')
    return 1 if left else 0
