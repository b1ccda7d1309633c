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
"""The decision record: who, for whom, which alternatives at what cost, why."""

import uuid

from oslo_log import log as logging

from nova_preempt import requester
from nova_preempt.db import api as db_api
from nova_preempt.termination import terms

LOG = logging.getLogger(__name__)

# Alternatives kept in a record, the best ones first.
MAX_CONSIDERED = 100


class Records:
    """Builds decision records.

    :param options: [preemption] of the configuration
    :param notice_limit_s: the longest notice possible
    """

    def __init__(self, options, notice_limit_s):
        self._options = options
        self._notice_limit_s = notice_limit_s

    def decision(self, attempt, state, option, server_uuid, project_id,
                 user_id):
        """The db.Decision to end the option's victims for a server.

        Its record is JSON: {operation, asked_by, flavor, resources, consider,
        cost, missing, surplus, optimal, steps, considered: [{host, node,
        victims, cost_us}], runner_up, why}.
        """
        costs = {victim.uuid: victim.cost
                 for victim in option.victim_set.victims}
        victims = tuple(
            make_victim(server, self._options, costs[server.uuid],
                        self._notice_limit_s)
            for server in option.victims)
        return db_api.Decision(
            uuid=str(uuid.uuid4()), server_uuid=server_uuid,
            request_id=attempt.context.request_id or '',
            operation=attempt.operation, project_id=project_id,
            user_id=user_id or '', host=state.host,
            provider_uuid=option.provider_uuid,
            cost_us=option.victim_set.cost, victims=victims,
            record=self._record(attempt, state, option))

    def log(self, decision):
        """One line for one preemption."""
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
             'asked_by': requester.text(decision.record['asked_by']),
             'runner_up': 'none' if runner_up is None else
             f'{runner_up["host"]}:{runner_up["cost_us"] / 1e6}'})

    def refused(self, attempt, server_uuid, reason):
        """The db.Decision that says why preemption did not help."""
        spec_obj = attempt.spec_obj
        return db_api.Decision(
            uuid=str(uuid.uuid4()), server_uuid=server_uuid,
            status=db_api.REFUSED, reason=reason,
            request_id=attempt.context.request_id or '',
            operation=attempt.operation,
            project_id=spec_obj.project_id or '',
            record={**self._basics(attempt),
                    'refusals': dict(attempt.candidates.refusals)
                    if attempt.candidates else {}})

    def _basics(self, attempt):
        return {
            'operation': attempt.operation,
            'asked_by': requester.describe(attempt.context),
            'flavor': attempt.spec_obj.flavor.name
            if 'name' in attempt.spec_obj.flavor else '',
            'resources': dict(attempt.resources or {}),
            'consider': self._options.consider,
            'cost': self._options.cost,
        }

    def _record(self, attempt, state, option):
        victim_set = option.victim_set
        others = [item for item in attempt.considered
                  if item['host'] != state.host]
        runner_up = min(others, default=None, key=lambda item: (
            bool(item['victims']), item['cost_us'], item['host']))
        return {
            **self._basics(attempt),
            'missing': dict(option.missing),
            'optimal': victim_set.optimal,
            'steps': victim_set.steps,
            'considered': attempt.considered[:MAX_CONSIDERED],
            'runner_up': runner_up,
            'why': _why(state, option, runner_up),
        }


def make_victim(server, options, cost_us=0, notice_limit_s=None):
    """The db.Victim of a nova_preempt.scheduler.view.Server."""
    ends = terms.get_terms(server, options)
    notice_s = terms.notice_rule(options, notice_limit_s).length_s(
        server.notice_s)
    return db_api.Victim(
        server.uuid, server.project_id, server.user_id, server.flavor,
        cost_us, launched_at=server.launched_at.replace(tzinfo=None),
        action=terms.MIGRATE if ends.migrate else ends.action,
        notice_s=notice_s, restore=ends.restore, last_resort=ends.action)


def _why(state, option, runner_up):
    missing = ', '.join(f'{amount} {name}' for name, amount
                        in sorted(option.missing.items()))
    text = (f'{state.host} lacks {missing}' if missing else
            f'{state.host} has room but does not pass the filters as it is')
    text += (f'; ending {len(option.victims)} preemptible server(s) there '
             f'costs {option.victim_set.cost / 1e6:g} s, the least of any '
             'sufficient set')
    if not option.victim_set.optimal:
        text += ' that was found within the search budget'
    if runner_up is None:
        return text + '; no other host can serve the request'
    return text + (f'; next would be {runner_up["host"]} at '
                   f'{runner_up["cost_us"] / 1e6:g} s')
