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
"""What must hold of every scheduling decision, whatever a scenario expects.

Worked out by the pure core from what Nova and Placement say, without our
scheduler.
"""

from nova_preempt.core import decide
from nova_preempt.core import model


def broken(needed, outcome, before, after):
    """Return what is wrong with an outcome, as sentences.

    :param needed: {resource class: amount} of the request
    :param outcome: a play.Outcome
    :param before: the play.HostStates that the request met
    :param after: those that it left behind
    """
    return (_over_capacity(after) + _normal_victims(outcome, before)
            + _not_cheapest(needed, outcome, before))


def _over_capacity(hosts):
    return [f'{host.name} is over capacity: {name} {amount} of '
            f'{host.capacity[name]}'
            for host in hosts for name, amount in host.used.items()
            if amount > host.capacity[name]]


def _normal_victims(outcome, hosts):
    allowed = set()
    if not outcome.request.preemptible:
        allowed = {server.name for host in hosts for server in host.servers
                   if server.preemptible}
    victims = outcome.chosen.victims if outcome.chosen else ()
    return [f'{name} was no possible victim' for name in victims
            if name not in allowed]


def _not_cheapest(needed, outcome, hosts):
    plans = {plan.host.name: plan for plan in decide.decide(
        [_host(host, outcome.request.preemptible) for host in hosts],
        needed).considered}
    considered = {choice.host: choice for choice in outcome.considered}
    wrong = [f'{name} {"could" if name in plans else "cannot"} serve it'
             for name in sorted(plans.keys() ^ considered.keys())]
    names = {server.uuid: server.name for host in hosts
             for server in host.servers}
    for name in sorted(plans.keys() & considered.keys()):
        victim_set = plans[name].victim_set
        cheapest = sorted(names[victim.uuid] for victim in victim_set.victims)
        choice = considered[name]
        if (cheapest, victim_set.cost) != ([*choice.victims], choice.cost_us):
            wrong.append(f'the cheapest on {name} are '
                         f'{", ".join(cheapest) or "none"} at '
                         f'{victim_set.cost / 1e6:g} s')
    return wrong + _wrong_host(outcome, plans)


def _wrong_host(outcome, plans):
    keys = {name: (bool(plan.victim_set.victims), plan.victim_set.cost)
            for name, plan in plans.items()}
    chosen = outcome.chosen
    if chosen is None:
        return ['it was refused without need'] if plans else []
    key = (bool(chosen.victims), chosen.cost_us)
    if key == keys.get(chosen.host) == min(keys.values(), default=None):
        return []
    return [f'{chosen.host} is not the best host for it']


def _host(host, preemptible_request):
    return model.Host(
        host.name, host.name,
        {name: model.Inventory(amount)
         for name, amount in host.capacity.items()},
        host.used,
        tuple(model.Candidate(server.uuid, server.resources, server.cost_us)
              for server in host.servers
              if server.preemptible and not preemptible_request))
