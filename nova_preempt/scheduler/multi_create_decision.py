# SPDX-License-Identifier: Apache-2.0
"""Decides on the hosts of all servers of a request at once.

It is made where Nova sorts hosts for the first of them, and carried out as
what the engine has chosen (multi_create_claim.py).
"""

import functools

from nova_preempt import exceptions
from nova_preempt.core import capacity
from nova_preempt.core.batch import batch_model
from nova_preempt.core.batch import solver_choice
from nova_preempt.scheduler import host_states as states
from nova_preempt.scheduler import weights

OFF = 'off'


def load(options, get_weighed):
    """Return the host chooser of a MultiCreateClaim, None if Nova chooses.

    :param options: [preemption] of the configuration
    :param get_weighed: given host states and a RequestSpec, Nova's weighed
        hosts
    :raises InvalidConfiguration: what it needs is not installed
    """
    score = options.multi_create_score
    if score == OFF:
        return None
    try:
        # All are alike: one by one places as many as is possible.
        placer = solver_choice.make(
            batch_model.Options(mode=batch_model.GREEDY, score=score))
    except solver_choice.NotInstalled as exc:
        raise exceptions.InvalidConfiguration(
            f'[preemption]multi_create_score is {score}: {exc}') from exc
    return functools.partial(
        _choose, placer, get_weighed if score == batch_model.WEIGHTS else None)


def _choose(placer, get_weighed, count, wanted, summaries, host_states,
            spec_obj):
    """Return {node: number of servers}; parameters as in MultiCreateClaim."""
    found = [state for state in host_states if state.uuid in summaries
             and not states.mark_of(state).victims]
    ranks = (_ranked(get_weighed(found, spec_obj))
             if get_weighed is not None and found else {})
    return solver_choice.place_identical(placer, wanted, count, [_room(state,
        summaries[state.uuid]['resources'], ranks.get(state.uuid,
        0)) for state in found], *_group(spec_obj))


def _group(spec_obj):
    """Return (policy, most servers on a host) of its server group."""
    group = (spec_obj.instance_group if 'instance_group' in spec_obj else None)
    if group is None or not group.policy:
        return '', 1
    return group.policy, int(group.rules.get('max_server_per_host', 1))


def _ranked(weighed):
    """Return {uuid: number of lower weights}."""
    ranks = weights.ranks(item.weight for item in weighed)
    return {item.obj.uuid: ranks[item.weight] for item in weighed}


def _room(state, resources, weight):
    return batch_model.HostState(
        state.nodename, capacity.free(resources),
        {name: item['capacity'] for name, item in resources.items()},
        weight=weight)
