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
"""What a scheduling request came to, as a dict for observers."""


def make(context, instance_uuids, cycle, selections, error):
    """The report on one request.

    :param cycle: the SchedulingCycle; None if the request may not preempt
    :param selections: what Nova's select_destinations returned, if it did
    :param error: the NoValidHost that it raised, if it did
    :returns: {request_id, server_uuids, preemptible, outcome, reason,
        placements: [{server_uuid, host, victims: [{server_uuid, cost_us}],
        cost_us}], considered: [{host, node, victims, cost_us}]}
    """
    claims = {} if cycle is None else {
        decision.server_uuid: decision for decision in cycle.taken.claims}
    placements = []
    for server_uuid, selection in zip(instance_uuids, selections or (),
                                      strict=False):
        decision = claims.get(server_uuid)
        placements.append({
            'server_uuid': server_uuid,
            'host': _host(selection),
            'victims': [{'server_uuid': victim.server_uuid,
                         'cost_us': victim.cost_us}
                        for victim in decision.victims] if decision else [],
            'cost_us': decision.cost_us if decision else 0,
            'decision': decision.uuid if decision else None,
        })
    return {
        'request_id': context.request_id,
        'server_uuids': list(instance_uuids),
        'preemptible': cycle is None,
        'outcome': 'no_valid_host' if error else 'placed',
        'reason': error.format_message() if error else '',
        'placements': placements,
        'considered': list(cycle.considered) if cycle else [],
    }


def _host(selection):
    """The host of a selection, in either form that Nova returns it."""
    if isinstance(selection, dict):
        return selection['host']
    return selection[0].service_host
