# SPDX-License-Identifier: Apache-2.0
"""Handlers about energy: draw and speed of hosts, sleep, savings."""

import datetime

from oslo_utils import timeutils
import webob.exc

from nova_preempt.api import energy_schemas as schemas
from nova_preempt.api import operation
from nova_preempt.api import pagination
from nova_preempt.api import policy
from nova_preempt.api import reservable_host_handlers
from nova_preempt.api import schemas as common
from nova_preempt.api import views
from nova_preempt.core.energy import efficiency_ranking
from nova_preempt.core.energy import power_savings
from nova_preempt.core.energy import power_steps
from nova_preempt.db import energy_store

#: The source of figures of which [energy]figures_file has any.
FILE = 'figures_file'
#: Default lengths of the period.
_SUMMARY = datetime.timedelta(days=30)
_REPORT = datetime.timedelta(days=7)
#: The most points of a report; each is the mean of several samples.
POINTS = 1000
#: The most intervals for which a sample is valid.
_HOLDS = 5

_FIGURES = ('flops', 'watts', 'idle_watts')

_EPOCH = datetime.datetime.fromisoformat('1970-01-01')


@operation.serves('GET', '/v1/energy', policy.ENERGY, schemas.ENERGY_ANSWER,
                  query=common.PERIOD_QUERY, since='1.1')
def show_energy(call):
    """Show the power draw of the cloud, and the savings."""
    since, until = _interval(call, _SUMMARY)
    samples = energy_store.get_samples(call.services.database, since, until)
    last = samples[-1] if samples else None
    states = energy_store.get_power(call.services.database).values()
    hosts = {name: sum(state.state == name for state in states)
             for name in power_steps.STATES}
    if last:
        # Hosts that were never idle have no stored state.
        hosts[power_steps.ON] = max(
            hosts[power_steps.ON], last.hosts_on - hosts[power_steps.WAKING])
    return {'energy': {
        'watts': last and last.watts,
        'sampled_at': last and views.time(last.sampled_at),
        'hosts': hosts,
        'since': views.time(since),
        **_totals(call, samples, since, until),
    }}


@operation.serves('GET', '/v1/energy/hosts', policy.ENERGY,
                  schemas.HOSTS_ANSWER, since='1.1')
def list_energy_hosts(call):
    """List hosts with their power states and figures."""
    database = call.services.database
    states = energy_store.get_power(database)
    measured = energy_store.get_figures(database)
    table = call.services.figures
    table.refresh()
    figures = table.all()
    readings = energy_store.get_readings(
        database, timeutils.utcnow() - datetime.timedelta(
            seconds=efficiency_ranking.MAX_AGE_S))
    return {'hosts': [
        _host(name, states.get(name), readings.get(name),
              figures.get(name) and _known(figures[name], measured.get(name)))
        for name in sorted({*states, *figures, *readings})]}


def _host(name, state, reading, figures):
    return {
        'name': name,
        'state': state.state if state else power_steps.ON,
        'since': state and views.time(state.since),
        'reason': state.reason if state else '',
        'idle_intervals': state.idle_intervals if state else 0,
        'boot_s': state and state.boot_s,
        'watts_now': reading and reading.watts,
        'figures': figures,
    }


def _known(figures, measured):
    """Return the figures in use, with their measurement or file as source."""
    if measured is not None and figures == efficiency_ranking.Figures(
            measured.flops, measured.watts, measured.idle_watts):
        return _measured(measured)
    return _figures(figures, None, FILE)


def _measured(item):
    return _figures(
        efficiency_ranking.Figures(item.flops, item.watts, item.idle_watts),
        views.time(item.measured_at), item.source)


def _figures(figures, measured_at, source):
    return views.render(figures, schemas.FIGURES_OF_HOST,
                       measured_at=measured_at, source=source)


@operation.serves('PUT', '/v1/energy/hosts/{name}/figures',
                  policy.ENERGY_FIGURES, schemas.FIGURES_ANSWER,
                  body=schemas.FIGURES, since='1.1')
def set_energy_figures(call):
    """Set the figures of a host."""
    name = reservable_host_handlers.get_host(call)['name']
    wanted = call.body['figures']
    given = efficiency_ranking.Figures(*(wanted.get(key) for key in _FIGURES))
    _check(given)
    figures = energy_store.HostEfficiency(
        name, given.flops, given.watts, given.idle_watts, timeutils.utcnow(),
        wanted.get('source', ''))
    energy_store.put_figures(call.services.database, [figures])
    return {'figures': _measured(figures)}


def _check(figures):
    """Refuse figures out of range."""
    wrong = efficiency_ranking.invalid_figures(figures)
    if wrong:
        raise webob.exc.HTTPBadRequest('; '.join(
            f"Invalid field 'figures.{key}': {getattr(figures, key):g} {why}"
            for key, why in wrong.items()) + '.')


@operation.serves('DELETE', '/v1/energy/hosts/{name}/figures',
                  policy.ENERGY_FIGURES, since='1.1')
def delete_energy_figures(call):
    """Delete the figures of a host."""
    name = pagination.name(call, 'name', 'host')
    if not energy_store.delete_figures(call.services.database, name):
        raise webob.exc.HTTPNotFound(f'Host {name!r} has no stored figures.')


@operation.serves('POST', '/v1/energy/hosts/{name}/retry', policy.ENERGY_RETRY,
                  success=202, errors=(409,), since='1.1')
def retry_energy_host(call):
    """Boot a host again that has failed."""
    database = call.services.database
    name = pagination.name(call, 'name', 'host')
    if name not in energy_store.get_power(database):
        raise webob.exc.HTTPNotFound(
            f'There is no host {name!r} with a power state.')
    if not energy_store.set_power(
            database, name, power_steps.WAKING, timeutils.utcnow(),
            from_states=(power_steps.FAILED,),
            reason='an operator requested another try'):
        raise webob.exc.HTTPConflict(
            f'Host {name!r} is not in the state {power_steps.FAILED}.')


@operation.serves('GET', '/v1/energy/report', policy.ENERGY,
                  schemas.REPORT_ANSWER, query=common.PERIOD_QUERY,
                  since='1.1')
def report_energy(call):
    """Show the power draw and the savings over time."""
    since, until = _interval(call, _REPORT)
    samples = energy_store.get_samples(call.services.database, since, until)
    return {'report': {
        'since': views.time(since), 'until': views.time(until),
        **_totals(call, samples, since, until),
        'series': [_point(part) for part in _parts(samples)]}}


def _interval(call, default):
    """Return (since, until), at most now."""
    given = pagination.interval(call)
    now = timeutils.utcnow()
    until = min(given.get('until', now), now)
    try:
        earliest = until - default
    except OverflowError:
        earliest = until
    return given.get('since', earliest), until


def _totals(call, samples, since, until):
    """Return the three published metrics, and kWh."""
    totals = power_savings.totals(
        [power_savings.CloudSample(_seconds(item.sampled_at), item.cores_total,
                                   item.cores_off, item.cores_used, item.watts,
                                   item.watts_saved) for item in samples],
        _seconds(until), _HOLDS * power_savings.INTERVAL_S)
    now = timeutils.utcnow()
    return {
        'res_idle_core_s': totals.idle_core_s,
        'e_savings_core_s': totals.saved_core_s,
        'delay_req': power_savings.delay_req(_delayed(energy_store.get_wakes(
            call.services.database, since, until), now)),
        'used_kwh': totals.used_kwh,
        'saved_kwh': totals.saved_kwh,
    }


def _delayed(wakes, now):
    """Yield the DelayedRequests of servers, of running ones up to now."""
    for wake in wakes:
        duration_s = wake.duration_s
        if duration_s is None:
            duration_s = (now - wake.waited_at).total_seconds()
        if duration_s > 0:
            yield power_savings.DelayedRequest(
                wake.cores, wake.boot_s, duration_s)


def _seconds(time):
    return (time - _EPOCH).total_seconds()


def _parts(samples):
    size = -(-len(samples) // POINTS)
    return [samples[start:start + size]
            for start in range(0, len(samples), size or 1)]


def _point(samples):
    """Return the mean of samples, at the time of the first."""
    watts = [item.watts for item in samples if item.watts is not None]
    return {
        'time': views.time(samples[0].sampled_at),
        'watts': sum(watts) / len(watts) if watts else None,
        **{name: sum(getattr(item, name) for item in samples) / len(samples)
           for name in schemas.MEANS}}
