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
"""What of a preemption is shown to whom.

An administrator sees everything. A project sees its own side: the server that
was placed if it is the project's, and its own victims. Who had to end for
whom, on which host, and what else was possible is not for other projects.
"""

# What a record says about the request alone.
_OWN_RECORD = ('operation', 'flavor', 'resources')


def time(value):
    """ISO 8601, or None."""
    return value and f'{value.replace(microsecond=0).isoformat()}Z'


def preemption(item, project_id=None, record=False):
    """A queries.Preemption as JSON.

    :param project_id: who sees it, None for an administrator
    :param record: whether the decision record is asked for
    """
    everything = project_id is None
    placed = everything or item.project_id == project_id
    view = {
        'id': item.uuid,
        'created_at': time(item.created_at),
        'updated_at': time(item.updated_at),
        'status': item.status,
        'operation': item.operation,
        'server': _server(item) if placed and item.server_uuid else None,
        'victims': [_victim(victim) for victim in item.victims
                    if everything or victim.project_id == project_id],
    }
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


def _victim(victim):
    return {'server_id': victim.server_uuid, 'project_id': victim.project_id,
            'user_id': victim.user_id, 'flavor': victim.flavor,
            'status': victim.status, 'cost_us': victim.cost_us,
            'action': victim.action, 'notice_s': victim.notice_s,
            'deadline': time(victim.deadline),
            'ended_at': time(victim.ended_at), 'restore': victim.restore}


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
    """A queries.Numbers as JSON."""
    return {
        'preemptions': sum(item.preemptions.values()),
        'preemptions_by_status': item.preemptions,
        'victims': sum(item.victims.values()),
        'victims_by_status': item.victims,
        'servers_placed': item.servers_placed,
        'mean_lifetime_s': item.mean_lifetime_s,
    }
