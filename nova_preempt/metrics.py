# SPDX-License-Identifier: Apache-2.0
"""Prometheus metrics of a process, and the endpoint that serves them."""

import json

from oslo_log import log as logging
import prometheus_client

LOG = logging.getLogger(__name__)

_SECONDS = (0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300)

DECISIONS = prometheus_client.Counter(
    'nova_preempt_decisions', 'Decisions to evict servers.', ['operation'])
REFUSALS = prometheus_client.Counter(
    'nova_preempt_refusals', 'Requests that preemption could not serve.')
VICTIMS = prometheus_client.Counter(
    'nova_preempt_victims', 'Evicted victims.', ['action', 'status'])
STUCK = prometheus_client.Counter(
    'nova_preempt_stuck_victims', 'Victims not evicted in time.')
WAITING = prometheus_client.Gauge(
    'nova_preempt_waiting_requests',
    'Requests of this process that wait for victims or may wait, limited by '
    '[preemption]max_waiting_requests.')
CYCLES = prometheus_client.Gauge(
    'nova_preempt_cycles',
    'Servers that were evicted repeatedly in the last hour, and pairs of '
    'projects that evict each other\'s servers in turn.', ['kind'])
CONFLICTS = prometheus_client.Counter(
    'nova_preempt_conflicts', 'Claims that failed since the host changed.')
ROLLED_BACK = prometheus_client.Counter(
    'nova_preempt_rolled_back', 'Decisions that were rolled back.')
REPAIRED = prometheus_client.Counter(
    'nova_preempt_orphans_repaired',
    'Inconsistencies repaired, for example after a crash.', ['kind'])
RESTORED = prometheus_client.Counter(
    'nova_preempt_restored', 'Shelved victims that were unshelved.')
OUTCOMES = prometheus_client.Counter(
    'nova_preempt_outcomes', 'Outcomes of the requests for which servers were '
    'evicted.', ['operation', 'outcome'])
EVICTED_SHARE = prometheus_client.Gauge(
    'nova_preempt_evicted_share',
    'Share of the hours of preemptible servers in which they were evicted.',
    ['flavor', 'zone', 'hours'])
EVICTED_LIFE = prometheus_client.Gauge(
    'nova_preempt_evicted_life_seconds',
    'Median life of the preemptible servers that were evicted.',
    ['flavor', 'zone', 'hours'])
IN_VAIN = prometheus_client.Counter(
    'nova_preempt_victims_in_vain',
    'Victims evicted for a server that was not placed.')
POWER_MOVES = prometheus_client.Counter(
    'nova_preempt_power_moves', 'Changes of the power of hosts.', ['state'])
POWER_ERRORS = prometheus_client.Counter(
    'nova_preempt_power_errors', 'Failed attempts to power a host on or off, '
    'which are retried.', ['state'])
POWER_HOSTS = prometheus_client.Gauge(
    'nova_preempt_power_hosts', 'Hosts by power state.', ['state'])
POWER_REQUIRED = prometheus_client.Gauge(
    'nova_preempt_power_required_hosts',
    'Hosts that have to be on by the last power decision.')
POWER_WATTS = prometheus_client.Gauge(
    'nova_preempt_power_watts', 'Power draw of hosts with a current reading.')
DEMAND_WAITS = prometheus_client.Counter(
    'nova_preempt_demand_waits',
    'Requests that waited for hosts to be powered on.', ['outcome'])
ENGINE_ACTS = prometheus_client.Gauge(
    'nova_preempt_engine_acts', '1 if this engine is the leader, else 0.')
ENGINE_DONE = prometheus_client.Gauge(
    'nova_preempt_engine_task_done_timestamp_seconds',
    'Time of the last success of each task of this engine.', ['task'])
ENGINE_FAILURES = prometheus_client.Counter(
    'nova_preempt_engine_task_failures',
    'Failures of tasks of this engine.', ['task'])
PAUSED = prometheus_client.Gauge(
    'nova_preempt_paused', '1 if an operator has paused the feature, else 0.',
    ['what'])
PHASES = prometheus_client.Histogram(
    'nova_preempt_phase_seconds', 'Duration of the parts of a preemption.',
    ['phase'], buckets=_SECONDS)

RESERVATIONS = prometheus_client.Gauge(
    'nova_preempt_reservations',
    'Open reservations, and ended reservations whose servers still run, as '
    'counted by the leading engine.', ['status'])
HOSTS_REPLACED = prometheus_client.Counter(
    'nova_preempt_reservation_hosts_replaced',
    'Replaced hosts of reservations.', ['reason'])
RESERVATION_BRAKE = prometheus_client.Gauge(
    'nova_preempt_reservation_brake',
    '1 if so many hosts are down at once that no host of a reservation is '
    'replaced, else 0.')
RESERVATIONS_LATE = prometheus_client.Histogram(
    'nova_preempt_reservation_late_seconds',
    'Delay of the start and end of reservations.', ['event'], buckets=_SECONDS)

BACKLOG_REQUESTS = prometheus_client.Gauge(
    'nova_preempt_backlog_requests',
    'Open requests of the backlog, as counted by the leading engine.',
    ['state'])
BACKLOG_CHANGES = prometheus_client.Counter(
    'nova_preempt_backlog_changes',
    'State transitions of requests of the backlog.', ['state'])
BACKLOG_STARTS = prometheus_client.Counter(
    'nova_preempt_backlog_starts',
    'Boots for requests of the backlog, by the answer of Nova.', ['answer'])
BACKLOG_WAITS = prometheus_client.Histogram(
    'nova_preempt_backlog_wait_seconds',
    'Waiting time of requests of the backlog until their boot.',
    buckets=(10, 30, 60, 300, 900, 1800, 3600, 4 * 3600, 12 * 3600, 86400,
             3 * 86400, 7 * 86400))
BACKLOG_STEP = prometheus_client.Histogram(
    'nova_preempt_backlog_step_seconds',
    'Duration of the steps of a pass over the backlog.', ['part'],
    buckets=_SECONDS)
BACKLOG_TRUSTS = prometheus_client.Gauge(
    'nova_preempt_backlog_trusts_left',
    'Closed or refused requests of the backlog whose trust could not be '
    'deleted yet.')

CLASS_SERVERS = prometheus_client.Gauge(
    'nova_preempt_class_servers', 'Servers of each class of service, as '
    'counted by the leading engine.', ['class', 'state'])
CLASS_AVAILABILITY = prometheus_client.Gauge(
    'nova_preempt_class_availability',
    'Share of their requested time in which the existing servers of a class '
    'have run.', ['class'])
CLASS_TARGET = prometheus_client.Gauge(
    'nova_preempt_class_target_availability',
    'Share of time that is promised to servers of a class.', ['class'])
CLASS_BELOW = prometheus_client.Gauge(
    'nova_preempt_class_servers_below_target',
    'Servers whose availability is below the promise of their class.',
    ['class'])
CLASS_PASSES = prometheus_client.Counter(
    'nova_preempt_class_passes',
    'Passes over waiting servers of a class that may preempt.')
CLASS_RETURNS = prometheus_client.Histogram(
    'nova_preempt_class_return_seconds',
    'Time from the choice of a host for a returning server until it runs '
    'there.', ['class'], buckets=(5, 10, 30, 60, 120, 300, 600, 1800))

WEBHOOK_EVENTS = prometheus_client.Counter(
    'nova_preempt_webhook_events', 'Events that webhooks of projects accepted '
    'or that were dropped, and failed calls.', ['result'])
WEBHOOK_WAITING = prometheus_client.Gauge(
    'nova_preempt_webhook_waiting_events',
    'Events of all projects that wait to be accepted by a webhook.')


def serve(port, address, report=None):
    """Serve the metrics at http://address:port/metrics, unless port is 0.

    Another worker, or the scheduler of this host, may have the port.

    :param report: returns (whether this process is healthy, its report as
        JSON); served at /healthcheck, with 503 if it is not healthy
    """
    if not port:
        return None
    try:
        server = prometheus_client.start_http_server(port, address)
        if report is not None:
            server[0].set_app(_with_health(server[0].get_app(), report))
    except OSError as exc:
        LOG.warning('This process serves no metrics at %s:%s: %s', address,
                    port, exc)
        return None
    LOG.info('Metrics are served at http://%s:%s/metrics.', address, port)
    return server


def _with_health(application, report):
    """Return a WSGI application that also serves /healthcheck."""
    def answer(environ, start_response):
        if environ.get('PATH_INFO') != '/healthcheck':
            return application(environ, start_response)
        is_well, told = report()
        start_response('200 OK' if is_well else '503 Service Unavailable',
                       [('Content-Type', 'application/json')])
        return [json.dumps(told, sort_keys=True).encode()]

    return answer
