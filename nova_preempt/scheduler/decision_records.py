# SPDX-License-Identifier: Apache-2.0
"""Builds decision records: victims, alternatives, costs, reason."""

import uuid

from oslo_log import log as logging

from nova_preempt import metrics
from nova_preempt import requester_identity
from nova_preempt.core import capacity
from nova_preempt.core.scheduling import ranked_hosts
from nova_preempt.db import decisions
from nova_preempt.handover import eviction_policy

LOG = logging.getLogger(__name__)

# Alternatives kept in a record, the best ones first.
MAX_CONSIDERED = 100


def decision(cycle, state, plan, server_uuid, project_id, user_id):
    """The db.Decision to end the plan's victims for a server.

    Its record is JSON: {operation, asked_by, flavor, resources, consider,
    cost, missing, devices, pinned, one_time, surplus, optimal, steps,
    considered: [{host, node, victims, cost_us}], runner_up, why}.
    """
    get_cost_us = cycle.decision.search.policy.published_cost_us
    costs = {victim.uuid: get_cost_us(victim.cost)
             for victim in plan.victim_set.victims}
    victims = tuple(
        eviction_policy.make_victim(
            server, cycle.preemption.process.options, costs[server.uuid],
            cycle.preemption.notice_limit_s) for server in plan.victims)
    return decisions.Decision(
        uuid=str(uuid.uuid4()), server_uuid=server_uuid,
        request_id=cycle.asked.context.request_id or '',
        operation=cycle.asked.operation, project_id=project_id,
        user_id=user_id or '', host=state.host, provider_uuid=plan.host.uuid,
        cost_us=get_cost_us(plan.cost_us), victims=victims,
        record=_record(cycle, state, plan))


def log(decision):
    """Log a preemption in one line."""
    runner_up = decision.record['runner_up']
    LOG.info(
        'Preemption %(uuid)s: request_id=%(request_id)s '
        'operation=%(operation)s server=%(server)s host=%(host)s '
        'victims=%(victims)s cost_s=%(cost)s runner_up=%(runner_up)s '
        'asked by %(asked_by)s',
        {'uuid': decision.uuid, 'request_id': decision.request_id,
         'operation': decision.operation,
         'server': decision.server_uuid, 'host': decision.host,
         'victims': ','.join(victim.server_uuid
                             for victim in decision.victims),
         'cost': decision.cost_us / 1e6,
         'asked_by': requester_identity.text(decision.record['asked_by']),
         'runner_up': 'none' if runner_up is None else
         f'{runner_up["host"]}:{runner_up["cost_us"] / 1e6}'})


def _basics(cycle):
    options = cycle.preemption.process.options
    return {
        'operation': cycle.asked.operation,
        'asked_by': requester_identity.describe(cycle.asked.context),
        'flavor': cycle.asked.spec_obj.flavor.name
        if 'name' in cycle.asked.spec_obj.flavor else '',
        'resources': dict(cycle.resources),
        'consider': options.consider,
        'cost': options.cost,
    }


def _record(cycle, state, plan):
    policy = cycle.decision.search.policy
    considered = get_considered(cycle)
    runner_up = next((item for item in considered
                      if item['host'] != state.host), None)
    return {
        **_basics(cycle),
        'missing': capacity.by_class(plan.missing),
        'devices': plan.devices(),
        'pinned': any(server.pinned for server in plan.victims),
        'one_time': eviction_policy.one_time(plan.victims),
        'optimal': plan.victim_set.optimal,
        'steps': plan.victim_set.steps,
        'considered': considered[:MAX_CONSIDERED],
        'runner_up': runner_up,
        'why': ranked_hosts.explain(
            state.host, plan, policy.published_cost_us(plan.cost_us),
            runner_up and (runner_up['host'], runner_up['cost_us']),
            promised=policy.classes is not None),
    }


def keep_refusal(cycle, server_uuid, reason):
    """Keep the record of a request that preemption could not help."""
    metrics.REFUSALS.inc()
    asked = cycle.asked
    try:
        cycle.preemption.process.decisions.create_decision(decisions.Decision(
            uuid=str(uuid.uuid4()), server_uuid=server_uuid,
            status=decisions.REFUSED, reason=reason,
            request_id=asked.context.request_id or '',
            operation=asked.operation,
            project_id=asked.spec_obj.project_id or '',
            record={**_basics(cycle),
                    'refusals': dict(cycle.decision.search.refusals)
                    if cycle.decision else {}}))
    except Exception:
        # The request has its answer; only the record of it is lost.
        LOG.exception('Cannot store the record of server %s.', server_uuid)


def get_considered(cycle):
    """[{host, node, victims, cost_us, ...}], the best first."""
    if cycle.decision is None:
        return []
    return [_entry(cycle, item) for item in cycle.decision.hosts.considered]


def _entry(cycle, item):
    entry = {'host': cycle.cloud.states[item.host].host,
             'node': item.name, 'victims': list(item.victims),
             'cost_us': cycle.decision.search.policy.published_cost_us(
                 item.cost_us)}
    if item.victims:
        entry.update(optimal=item.optimal, steps=item.steps)
    return entry
