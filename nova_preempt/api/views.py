# SPDX-License-Identifier: Apache-2.0
"""JSON views of preemptions, by the role of the caller.

An administrator sees everything. A project sees its own side: the placed
server if it owns it, and its own victims. Servers of other projects, hosts and
alternatives are hidden.
"""

import datetime

from nova_preempt.api import schemas

# Members of a record that are about the request only.
_OWN_RECORD = ('operation', 'flavor', 'resources')


def time(value):
    """Return a time in ISO 8601, None for None."""
    return value and f'{value.replace(microsecond=0).isoformat()}Z'


def render(item, schema, names=None, **others):
    """Return an object as JSON, with the required members of a schema.

    :param names: {member: attribute of the object} where they differ
    :param others: the values of members that are not attributes
    """
    names = names or {}
    return {name: others[name] if name in others
            else _json(getattr(item, names.get(name, name)))
            for name in schema['required']}


def _json(value):
    return time(value) if isinstance(value, datetime.datetime) else value


def preemption(item, project_id=None, record=False):
    """Return a db.Decision as JSON.

    :param project_id: the project of the caller, None for an administrator
    :param record: whether the decision record is included
    """
    everything = project_id is None
    placed = everything or item.project_id == project_id
    view = render(
        item, schemas.PREEMPTION, {'id': 'uuid'},
        server=_server(item) if placed and item.server_uuid else None,
        victims=[render(victim, schemas.VICTIM, {'server_id': 'server_uuid'})
                 for victim in item.victims
                 if everything or victim.project_id == project_id])
    if placed:
        view.update(request_id=item.request_id)
    if everything:
        view.update(host=item.host, cost_us=item.cost_us, reason=item.reason)
    if record:
        view['record'] = {
            name: value for name, value in item.record.items()
            if everything or (placed and name in _OWN_RECORD)}
        if placed and item.outcome:
            view['record']['outcome'] = item.outcome
    return view


def _server(item):
    return {'id': item.server_uuid, 'project_id': item.project_id,
            'user_id': item.user_id, 'flavor': item.record.get('flavor', '')}


def explanation(answer, project_id=None):
    """Return an explanation of the scheduler as JSON.

    :param project_id: as of preemption()
    """
    everything = project_id is None
    view = {
        'outcome': answer['outcome'],
        'victim_count': len(answer['victims']),
        'victims': [
            {'server_id': victim['server_uuid'],
             'project_id': victim['project_id'], 'flavor': victim['flavor'],
             'cost_us': victim['cost_us']}
            for victim in answer['victims']
            if everything or victim['project_id'] == project_id],
    }
    if everything:
        view.update({name: answer[name] for name in (
            'host', 'cost_us', 'reason', 'considered')})
    return view


def numbers(item):
    """A preemption_queries.PreemptionCounts as JSON."""
    return render(
        item, schemas.NUMBERS,
        {'preemptions_by_status': 'preemptions',
         'victims_by_status': 'victims'},
        preemptions=sum(item.preemptions.values()),
        victims=sum(item.victims.values()))
