# SPDX-License-Identifier: Apache-2.0
"""Summarizes each object that a command shows in one sentence.

Each function takes the answer of the API as a dict.
"""

from nova_preempt.client.table_text import counted
from nova_preempt.client.table_text import scalar

# Why servers were evicted, other than for a new server: {operation: cause}.
_CAUSES = {
    'headroom': 'to keep the headroom free',
    'maximum_runtime': 'at the end of the maximum run time',
    'reservation': 'for a reservation of their host',
    'simulate': 'as somebody has requested it',
    'repair': 'as their space was allocated twice'}
_VERBS = {'intent': 'to be evicted', 'claimed': 'being evicted',
          'rolling_back': 'being kept after all', 'done': 'evicted',
          'rolled_back': 'kept after all', 'aborted': 'kept after all'}
_OPEN = ('intent', 'claimed', 'rolling_back')
_REQUESTS = {
    'waiting': 'It waits for capacity', 'placing': 'Its servers are starting',
    'active': 'Its servers run', 'partly_active': 'Some of its servers run',
    'evicted': 'Its servers were evicted', 'done': 'It is done',
    'failed': 'It has failed', 'cancelled': 'It was cancelled',
    'expired': 'It has waited for too long'}


def preemption(item):
    """Return for whom servers are evicted."""
    if 'status' not in item:
        return ('The server is being evicted; "openstack preemption show '
                f'{item["id"]}" says how far this is.')
    server, count = item['server'], len(item['victims'])
    if item['status'] == 'refused':
        done = 'No server was evicted'
    else:
        be = 'is' if item['status'] in _OPEN else 'was'
        if count != 1:
            be = {'is': 'are', 'was': 'were'}[be]
        done = f'{counted(count, "server")} {be} {_VERBS[item["status"]]}'
    cause = _CAUSES.get(item['operation']) or (
        f'for a server of flavor {server["flavor"]} ({item["operation"]})'
        if server else f'for another server ({item["operation"]})')
    return _end(f'{done} {cause}', item.get('reason'))


def explanation(item):
    """Return what a new server would cause."""
    host = f' on host {item["host"]}' if item.get('host') else ''
    if item['outcome'] == 'free':
        return f'It would start{host} without evicting a server.'
    if item['outcome'] == 'preempts':
        count, seen = item['victim_count'], len(item['victims'])
        rest = '' if seen == count else f', of which you see {seen}'
        return _end(f'It would evict {counted(count, "server")}{host}{rest}',
                    item.get('reason'))
    return _end('No host has space for it, even with evictions',
                item.get('reason'))


def reservation(item):
    """Return what the hosts of a reservation do."""
    hosts = counted(item['quantity'], 'host')
    ready = sum(1 for host in item['hosts'] if host['status'] == 'ready')
    rest = '' if ready == len(item['hosts']) else (
        f', {ready} free of other servers so far')
    return _end({
        'pending': f'{hosts} will be reserved from {item["start_at"]} to '
                   f'{item["end_at"]}',
        'active': f'{hosts} reserved until {item["end_at"]}{rest}',
        'degraded': f'It lacks a host until {item["end_at"]}',
        'ended': f'It is over since {item["end_at"]}',
        'cancelled': 'It was cancelled',
    }.get(item['status'], 'It has failed'), item['reason'])


def reservation_preview(item):
    """Return whether the hosts could be reserved."""
    if not item['possible']:
        return 'Too few hosts are free at any of these times.'
    return (f'{counted(len(item["hosts"]), "host")} could be reserved from '
            f'{item["start_at"]} to {item["end_at"]}.')


def reservable_host(item):
    """Return whether a host can be reserved."""
    if not item['reservable']:
        return 'The host is not open to reservations.'
    if item['state'] != 'up' or item['status'] != 'enabled':
        return f'The host is {item["state"]} and {item["status"]}.'
    return (f'The host can be reserved; it has '
            f'{counted(item["running_servers"], "server")} and '
            f'{counted(len(item["reservations"]), "reservation")}.')


def reservation_limits(item):
    """Return whose limits apply."""
    return ('The project has limits of its own.' if item['own'] else
            'The default limits apply to the project.')


def backlog_request(item):
    """Return why a request waits, or what became of it."""
    said = _REQUESTS.get(item['status'], f'It is {item["status"]}')
    if item['status'] in ('placing', 'partly_active'):
        started = sum(1 for server in item['servers']
                      if server['status'] == 'running')
        said += f', {started} of {item["count"]} so far'
    if item.get('position'):
        said += f' at position {item["position"]}'
    if item.get('estimate_s'):
        said += f', for about {item["estimate_s"]} s more'
    return _end(said, item['waits_for'].get('text') or item['reason'])


def energy(item):
    """Return what hosts draw, and what was saved."""
    hosts = item.get('hosts')
    drawn = '' if item.get('watts') is None else (
        f'The hosts draw {scalar(item["watts"])} W; ')
    asleep = '' if hosts is None else (
        f', and {hosts["asleep"]} of {counted(sum(hosts.values()), "host")} '
        'sleep')
    text = (f'{drawn}{scalar(item["saved_kwh"])} kWh were saved since '
            f'{item["since"]}{asleep}.')
    return text[0].upper() + text[1:]


def energy_host(item):
    """Return the power state of a host."""
    since = f' since {item["since"]}' if item.get('since') else ''
    return _end(f'The host is {item["state"]}{since}', item['reason'])


def status(item):
    """Return who acts, what is paused, and how many were evicted."""
    paused = ', '.join(pause['what'] for pause in item['pauses'])
    acts = (f'The engine on {item["leader"]} acts' if item['leader'] else
            'No engine acts')
    be = 'was' if item['victims_today'] == 1 else 'were'
    return (f'{acts}; {f"{paused} is" if paused else "nothing is"} paused; '
            f'{counted(item["victims_today"], "server")} {be} evicted today.')


def _end(text, reason=None):
    """Return a sentence with its reason, and one full stop."""
    text += f': {reason}' if reason else ''
    return text if text.endswith('.') else f'{text}.'
