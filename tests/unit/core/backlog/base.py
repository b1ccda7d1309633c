# SPDX-License-Identifier: Apache-2.0
"""Requests for the tests of the backlog."""

import datetime

from nova_preempt.core.backlog import backlog_model
from nova_preempt.core.backlog import dispatch
from nova_preempt.core.backlog import dispatch_values
from nova_preempt.core.backlog import host_capacity
from nova_preempt.core.backlog import request_servers
from nova_preempt.core.observed_server import ObservedServer

NOW = datetime.datetime(2026, 1, 1, 12)


def ago(seconds):
    return NOW - datetime.timedelta(seconds=seconds)


def alternative(name='small', preemptible=False, run_s=None, **resources):
    return backlog_model.Alternative(name, name, resources or {'VCPU': 1},
                                     preemptible, run_s)


def request(uuid='r1', *alternatives, **changes):
    values = {
        'uuid': uuid, 'project_id': 'p1', 'user_id': 'u1', 'trust_id': 't1',
        'body': {'server': {}}, 'compute_version': '2.90', 'count': 1,
        'alternatives': alternatives or (alternative(),),
        'created_at': NOW, 'updated_at': NOW}
    values.update(changes)
    values.setdefault('least_count', values['count'])
    return backlog_model.Request(**values)


def servers(*states):
    return tuple(backlog_model.OwnServer(f's{number}', 1, state, NOW)
                 for number, state in enumerate(states))


def decide(ranked, rooms, now, options, pending=(), unseen=(),
           turns=None, **cloud):
    """Make a pass over requests in this order, see dispatch.decide()."""
    return dispatch.decide(
        ranked, dispatch_values.Cloud(list(rooms), **cloud), now, options,
        pending, unseen, turns)


def host(name, free, reclaimable=None, capacity=8, ends=()):
    return host_capacity.HostCapacity(
        name, {'VCPU': free},
        {'VCPU': free if reclaimable is None else reclaimable},
        {'VCPU': capacity},
        tuple(host_capacity.Departure(in_s, {'VCPU': amount}) for in_s,
              amount in ends))


def vcpus(number, **kwargs):
    return alternative(str(number), VCPU=number, **kwargs)


def starts(found):
    return [(start.uuid, start.flavor_id, start.count)
            for start in found.starts]


def codes(found):
    return {uuid: note.waits_for['code']
            for uuid, note in found.notes.items()}


def boot(number=1, state=backlog_model.ASKED, count=1, age_s=0):
    return backlog_model.SentBoot(number, request_servers.tag('r1', number),
                                  'small', count, ago(age_s), state)


def own(uuid, state=backlog_model.RUNNING, number=1):
    return backlog_model.OwnServer(uuid, number, state, NOW)


def sight(uuid, vm_state='active', number=1, **values):
    return ObservedServer(
        uuid, vm_state, tags=(request_servers.tag('r1', number),), **values)


def placing(*states, count=1, age_s=0, state=backlog_model.ASKED, **values):
    """Make a request with a boot under way, and servers of it."""
    return request(
        state=backlog_model.PLACING, count=count,
        boots=(boot(state=state, count=count, age_s=age_s),),
        servers=tuple(own(f's{number}', state)
                      for number, state in enumerate(states)), **values)


def running(*states, count=None, **values):
    """Make a request whose boot is over, with servers in these states."""
    return request(
        state=backlog_model.ACTIVE, count=count or len(states),
        boots=(boot(state=backlog_model.SETTLED, count=len(states),
                    age_s=9999),),
        servers=tuple(own(f's{number}', state)
                      for number, state in enumerate(states)), **values)
