# SPDX-License-Identifier: Apache-2.0
"""JSON views of preemptions, by the role of the caller.

An administrator sees everything. A project sees its own side: the server that
was placed if it is the project's, and its own victims. Who had to end for
whom, on which host, and what else was possible is not for other projects.
"""

import datetime

from nova_preempt.api import schemas

# What a record says about the request alone.
_OWN_RECORD = ('operation', 'flavor', 'resources')


def time(value):
    """ISO 8601, or None."""
    return value and f'{value.replace(microsecond=0).isoformat()}Z'


def render(item, schema, names=None, **others):
    """An object as the JSON of a schema.

    :param schema: whose required members are shown, in its order
    :param names: {member: attribute of the object} of those that are called
        otherwise there
    :param others: the values of members that are no attributes
    """
    names = names or {}
    return {name: others[name] if name in others
            else _json(getattr(item, names.get(name, name)))
            for name in schema['required']}


def _json(value):
    return time(value) if isinstance(value, datetime.datetime) else value


def preemption(item, project_id=None, record=False):
    """A db.Decision as JSON.

    :param project_id: who sees it, None for an administrator
    :param record: whether the decision record is asked for
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
    """The scheduler's answer as JSON; parameters as above."""
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
    """A queries.PreemptionCounts as JSON."""
    return render(
        item, schemas.NUMBERS,
        {'preemptions_by_status': 'preemptions',
         'victims_by_status': 'victims'},
        preemptions=sum(item.preemptions.values()),
        victims=sum(item.victims.values()))
