# SPDX-License-Identifier: Apache-2.0
"""Reads Nova's instance actions of many servers.

Nova's objects read the actions of a single server, and the events of a single
action: with thousands of servers that takes minutes.
"""

import collections

from nova.db.main import api as main_db
from nova.db.main import models

from nova_preempt.cloud import parallel_calls
from nova_preempt.core.classes import clock_events
from nova_preempt.core.times import microseconds

# Events that tell when an instance began to run on a host.
_EVENTS = ('compute__do_build_and_run_instance', 'compute_start_instance',
           'compute_unshelve_instance')


def read(context, servers):
    """Return {uuid: [clock_events.InstanceAction]} of ObservedServers.

    :param context: of their cell
    """
    by_uuid = {server.uuid: server for server in servers}
    found = {uuid: [] for uuid in by_uuid}
    for uuids in parallel_calls.batches(by_uuid):
        rows = _actions(context, uuids)
        events = collections.defaultdict(list)
        for ids in parallel_calls.batches(row.id for row in rows
                                         if row.action in clock_events.RUN):
            for event in _events(context, ids):
                events[event.action_id].append(event)
        for row in rows:
            found[row.instance_uuid].append(_action(
                by_uuid[row.instance_uuid], row, events[row.id]))
    return found


@main_db.pick_context_manager_reader
def _actions(context, uuids):
    action = models.InstanceAction
    return context.session.query(
        action.id, action.instance_uuid, action.action, action.project_id,
        action.start_time, action.message).filter(
            action.instance_uuid.in_(uuids), action.deleted == 0,
            action.action.in_(sorted(clock_events.ACTIONS)),
            action.start_time.is_not(None)).all()


@main_db.pick_context_manager_reader
def _events(context, action_ids):
    event = models.InstanceActionEvent
    return context.session.query(
        event.action_id, event.event, event.start_time, event.finish_time,
        event.result).filter(event.action_id.in_(action_ids),
                             event.deleted == 0).all()


def _action(server, row, events):
    by_owner = clock_events.is_by_owner(row.project_id, server.project_id)
    asked_us = _us(row.start_time)
    common = row.action, row.id, asked_us, by_owner
    if row.action not in clock_events.RUN:
        failed = row.message == 'Error'
        return clock_events.InstanceAction(*common, failed=failed)
    return clock_events.InstanceAction(*common, *_run(server, row, events))


def _run(server, row, events):
    """Return (when placed, when running or failed, whether it failed)."""
    ours = [event for event in events if event.event in _EVENTS]
    placed_us = min((_us(event.start_time) for event in ours
                     if event.start_time), default=None)
    good = [_us(event.finish_time) for event in ours
            if event.finish_time and event.result == 'Success']
    # A reschedule to another host counts as a success, too.
    if good and server.launched_at is not None:
        return placed_us, max(good), False
    bad = [_us(event.finish_time) for event in events
           if event.finish_time and event.result == 'Error']
    if bad and row.message == 'Error':
        return placed_us, max(bad), True
    return placed_us, None, False


def _us(at):
    """Return microseconds since the epoch, None for None."""
    return at and microseconds(at)
