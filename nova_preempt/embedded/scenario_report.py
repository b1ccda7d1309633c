# SPDX-License-Identifier: Apache-2.0
"""Reports a scenario's results as text and JSON."""

import textwrap

from nova_preempt.embedded import scenario as scenarios

WIDTH = 100
US_PER_S = 1_000_000
# Leaves space for a host, a cost and a mark beside the names of victims.
VICTIMS_WIDTH = 44


def title(name, scenario):
    """Return the first lines."""
    return _wrap(f'Scenario {name}. {scenario.description}'.strip())


def hosts(heading, states):
    """Return the servers of the hosts, as lines."""
    lines = ['', heading]
    rows = _columns([_host_row(state) for state in states], '  ')
    servers = iter(_columns([_server_row(server) for state in states
                             for server in state.servers], '    '))
    for state, row in zip(states, rows, strict=True):
        lines.append(row)
        lines += [next(servers) for _ in state.servers]
    return lines


def request(scenario, item):
    """Return the request, as lines."""
    flavor = scenario.flavors[item.flavor]
    kind = 'preemptible' if item.preemptible else 'normal'
    text = (f'Request {item.name}: {item.flavor}, {kind}, {flavor.vcpus} '
            f'vCPUs, {flavor.memory_mb} MB, {flavor.disk_gb} GB')
    return ['', text]


def outcome(scenario, result, states):
    """Return the outcome of a request and its reason, as lines.

    :param result: a scenario_player.RequestOutcome
    :param states: the scenario_player.HostStates before
    """
    considered = {choice.host: choice for choice in result.considered}
    rows = []
    for choice in result.considered:
        rows += _choice_rows(choice, result.chosen)
    rows += [(state.name, 'cannot serve it', '', '') for state in states
             if state.name not in considered]
    return _columns(rows, '  ') + _wrap(_why(scenario, result, states), '  ')


def as_json(outcomes):
    """Return the JSON document of [scenario_player.RequestOutcome]."""
    return {'requests': [{
        'name': result.request.name,
        'outcome': result.name,
        'host': result.chosen.host if result.chosen else None,
        'victims': list(result.chosen.victims) if result.chosen else [],
        'cost_s': _seconds(result.chosen.cost_us) if result.chosen else None,
        'considered': [{
            'host': choice.host,
            'victims': list(choice.victims),
            'cost_s': _seconds(choice.cost_us),
        } for choice in result.considered],
    } for result in outcomes]}


def differences(expectation, result):
    """Return the differences from an expectation, as sentences."""
    found = scenarios.Expectation(result.name)
    if result.chosen:
        found = scenarios.Expectation(
            result.name, result.chosen.host, result.chosen.victims,
            result.chosen.cost_us)
    pairs = [
        ('outcome is', expectation.outcome, found.outcome, str),
        ('host is', expectation.host, found.host, _host),
        ('victims are', expectation.victims, found.victims or (), _names),
        ('cost is', expectation.cost_us, found.cost_us, _cost)]
    return [f'{what} {show(came)}, not {show(expected)} as expected'
            for what, expected, came, show in pairs
            if expected is not None and expected != came]


def _host_row(state):
    used = {name: f'{state.used[name]}/{amount}'
            for name, amount in state.capacity.items()}
    return (state.name, f'{used["VCPU"]} vCPUs', f'{used["MEMORY_MB"]} MB',
            f'{used["DISK_GB"]} GB')


def _server_row(server):
    mark = (f'preemptible, costs {_minutes(server.cost_us)}'
            if server.preemptible else '')
    return (server.name, server.flavor, _minutes(server.uptime_us), mark)


def _choice_rows(choice, chosen):
    names = textwrap.wrap(_names(choice.victims), VICTIMS_WIDTH,
                          break_on_hyphens=False)
    mark = '<- chosen' if choice == chosen else ''
    rows = [(choice.host, names[0], _minutes(choice.cost_us), mark)]
    return rows + [('', line, '', '') for line in names[1:]]


def _why(scenario, result, states):
    """Return the reason of an outcome, as a sentence."""
    chosen = result.chosen
    if chosen is None:
        return _why_not(scenario, result.request, states)
    if not chosen.victims:
        return f'{chosen.host} has free space, so no server is evicted.'
    verb = 'is' if len(chosen.victims) == 1 else 'are'
    text = (f'{_names(chosen.victims)} on {chosen.host} {verb} evicted, at a '
            f'cost of {_minutes(chosen.cost_us)}')
    others = [choice for choice in result.considered if choice != chosen]
    if not others:
        return f'{text}; no other host can serve it.'
    return (f'{text}; the next best, {_names(others[0].victims)} on '
            f'{others[0].host}, would cost {_minutes(others[0].cost_us)}.')


def _why_not(scenario, item, states):
    needed = scenario.needed(item)
    offers = ', '.join(
        f'{state.name} has {_offer(state, needed, item.preemptible)}'
        for state in states)
    if item.preemptible:
        return ('No host has space, and a preemptible server evicts no other: '
                f'{offers} free.')
    return ('No host would have space, even without its preemptible '
            f'servers: {offers}.')


def _offer(state, needed, preemptible):
    """Return the available amounts of the classes with a shortfall."""
    units = {'VCPU': 'vCPUs', 'MEMORY_MB': 'MB', 'DISK_GB': 'GB'}
    gone = [] if preemptible else [
        server for server in state.servers if server.preemptible]
    room = {name: state.capacity[name] - state.used[name]
            + sum(server.resources.get(name, 0) for server in gone)
            for name in needed}
    return ' and '.join(
        f'{room[name]} {units[name]}' for name in needed
        if room[name] < needed[name])


def _names(names):
    return ', '.join(names) if names else 'none'


def _minutes(cost_us):
    text = f'{cost_us / scenarios.US_PER_MIN:.3f}'
    return f'{text.rstrip("0").rstrip(".")} min'


def _host(name):
    return name or 'none'


def _cost(cost_us):
    return 'none' if cost_us is None else f'{_seconds(cost_us)} s'


def _seconds(cost_us):
    """Convert to seconds, an int if they are whole."""
    whole, rest = divmod(cost_us, US_PER_S)
    return cost_us / US_PER_S if rest else whole


def _columns(rows, indent):
    """Align rows of texts; the texts of a number and a unit to the right."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = []
    for row in rows:
        cells = [text.rjust(width) if text[:1].isdigit() and ' ' in text
                 else text.ljust(width)
                 for text, width in zip(row, widths, strict=True)]
        lines.append((indent + '  '.join(cells)).rstrip())
    return lines


def _wrap(text, indent=''):
    return textwrap.wrap(text, WIDTH, initial_indent=indent,
                         subsequent_indent=indent, break_on_hyphens=False)
