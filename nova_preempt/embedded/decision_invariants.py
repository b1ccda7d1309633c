# SPDX-License-Identifier: Apache-2.0
"""Invariants of every scheduling decision in a scenario.

Computed from the state of Nova and Placement by trying all sets of victims,
independently of the code that decides. Suitable for hosts with up to a dozen
preemptible servers.
"""

import fractions
import itertools


def broken(needed, outcome, before, after):
    """Return the violated invariants of an outcome, as sentences.

    :param needed: {resource class: amount} of the request
    :param outcome: a scenario_player.RequestOutcome
    :param before: the scenario_player.HostStates before the request
    :param after: the HostStates after it
    """
    return (_over_capacity(after) + _normal_victims(outcome, before)
            + _not_cheapest(needed, outcome, before))


def _over_capacity(hosts):
    return [f'{host.name} is over capacity: {amount} of '
            f'{host.capacity[name]} {name} are used'
            for host in hosts for name, amount in host.used.items()
            if amount > host.capacity[name]]


def _normal_victims(outcome, hosts):
    allowed = set()
    if not outcome.request.preemptible:
        allowed = {server.name for host in hosts for server in host.servers
                   if server.preemptible}
    victims = outcome.chosen.victims if outcome.chosen else ()
    return [f'{name} was evicted, but is not preemptible' for name in victims
            if name not in allowed]


def _not_cheapest(needed, outcome, hosts):
    plans = {
        host.name: found for host in hosts if (found := _cheapest(
            host, needed, outcome.request.preemptible)) is not None}
    considered = {choice.host: choice for choice in outcome.considered}
    wrong = [f'{name} {"can" if name in plans else "cannot"} serve the request'
             for name in sorted(plans.keys() ^ considered.keys())]
    for name in sorted(plans.keys() & considered.keys()):
        cheapest = sorted(server.name for server in plans[name])
        cost_us = _cost_us(plans[name])
        choice = considered[name]
        if (cheapest, cost_us) != ([*choice.victims], choice.cost_us):
            wrong.append(f'the cheapest victims on {name} are '
                         f'{", ".join(cheapest) or "none"} at '
                         f'{cost_us / 1e6:g} s')
    return wrong + _wrong_host(outcome, plans)


def _wrong_host(outcome, plans):
    keys = {name: (bool(victims), _cost_us(victims))
            for name, victims in plans.items()}
    chosen = outcome.chosen
    if chosen is None:
        return ['the request was refused, but can be served'] if plans else []
    key = (bool(chosen.victims), chosen.cost_us)
    if key == keys.get(chosen.host) == min(keys.values(), default=None):
        return []
    return [f'{chosen.host} is not the best host for the request']


def _cheapest(host, needed, preemptible_request):
    """Return the cheapest sufficient victims, None if there are none.

    Ties are broken by fewer victims, then by the least freed amount of the
    needed classes (as shares of the host), then by uuid.
    """
    spot = [] if preemptible_request else [
        server for server in host.servers if server.preemptible]
    sets = [victims for count in range(len(spot) + 1)
            for victims in itertools.combinations(spot, count)
            if _makes_room(host, needed, victims)]
    return min(sets, default=None, key=lambda victims: (
        _cost_us(victims), len(victims), _share(host, needed, victims),
        sorted(server.uuid for server in victims)))


def _makes_room(host, needed, victims):
    return all(
        amount <= host.capacity[name] - host.used[name]
        + sum(server.resources.get(name, 0) for server in victims)
        for name, amount in needed.items())


def _cost_us(victims):
    return sum(server.cost_us for server in victims)


def _share(host, needed, victims):
    return sum(fractions.Fraction(server.resources.get(name, 0),
                                  host.capacity[name])
               for server in victims for name in needed if needed[name])
