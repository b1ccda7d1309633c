# SPDX-License-Identifier: Apache-2.0

"""Handlers of backlog statistics: counts, waits and run times."""

import datetime

from oslo_utils import timeutils
import webob.exc

from nova_preempt.api import operation
from nova_preempt.api import pagination
from nova_preempt.api import policy
from nova_preempt.api import schemas
from nova_preempt.api import views
from nova_preempt.core.backlog import backlog_model
from nova_preempt.core.backlog import request_history
from nova_preempt.db import backlog_history

_HOURS = 24
_MOST_HOURS = 24 * 365
# A week, as in the energy report.
_REPORT = datetime.timedelta(days=7)
_MOST_REPORT = datetime.timedelta(days=366)
_PARTS = 100

_object = schemas.make_object
_SECONDS = {'type': ['integer', 'null']}

STATISTICS_QUERY = schemas.make_query({
    'hours': {'type': 'integer', 'minimum': 1, 'maximum': _MOST_HOURS,
              'description': 'Hours before now that wait times are taken '
                             f'from; {_HOURS} if missing.'}})
_NUMBERS = _object({
    'requests': schemas.COUNT, 'requests_by_status': schemas.COUNTS,
    'started': schemas.COUNT, 'started_per_hour': {'type': 'number'},
    'median_wait_s': _SECONDS, 'p95_wait_s': _SECONDS})
STATISTICS_ANSWER = _object({'requests_statistics': _object({
    'hours': schemas.COUNT, 'since': schemas.TIME, 'total': _NUMBERS,
    'classes': schemas.array(_object(
        {'class': schemas.STRING, **_NUMBERS['properties']}))})})

REPORT_QUERY = schemas.make_query(schemas.PERIOD, 'report_query')
_SHARE = {'type': ['number', 'null']}
REPORT_ANSWER = _object({'requests_report': _object({
    **schemas.PERIOD,
    'classes': schemas.array(_object({
        'class': schemas.STRING, 'requests': schemas.COUNT,
        'running_s': schemas.COUNT, 'waiting_s': schemas.COUNT,
        'starting_s': schemas.COUNT, 'availability': _SHARE,
        'series': schemas.array(_object(
            {'time': schemas.TIME, 'availability': _SHARE},
            section='course_point'))}))})})


@operation.serves('GET', '/v1/requests-statistics', policy.BACKLOG_STATISTICS,
                  STATISTICS_ANSWER, query=STATISTICS_QUERY, since='1.3')
def requests_statistics(call):
    """Count requests, and show how long they waited."""
    project_id = _whose(call)
    hours = call.query.get('hours', _HOURS)
    since = _now() - datetime.timedelta(hours=hours)
    numbers = backlog_history.numbers(call.services.database, project_id)
    found = list(backlog_history.started(call.services.database, since,
                                         project_id))
    waits = request_history.waits(found, since)
    every = request_history.waits([request_history.History(
        item.changes, not_before=item.not_before) for item in found], since)
    total = {}
    for states in numbers.values():
        for state, number in states.items():
            total[state] = total.get(state, 0) + number
    return {'requests_statistics': {
        'hours': hours, 'since': views.time(since),
        'total': _numbers(total, every.get(''), hours),
        'classes': [
            {'class': name, **_numbers(numbers.get(name, {}),
                                       waits.get(name), hours)}
            for name in sorted({*numbers, *waits})]}}


def _numbers(states, waits, hours):
    waits = waits or request_history.WaitStats(0, None, None)
    return views.render(
        waits, _NUMBERS, {'median_wait_s': 'median_s', 'p95_wait_s': 'p95_s'},
        requests=sum(states.values()),
        requests_by_status={state: states[state]
                            for state in backlog_model.STATES
                            if state in states},
        started_per_hour=waits.started / hours)


@operation.serves('GET', '/v1/requests-report', policy.BACKLOG_STATISTICS,
                  REPORT_ANSWER, query=REPORT_QUERY, since='1.3')
def requests_report(call):
    """Show how much the requests of each class ran over time."""
    project_id = _whose(call)
    asked = pagination.interval(call)
    now = _now()
    # The future is unknown.
    until = min(asked.get('until', now), now)
    try:
        since = asked.get('since', until - _REPORT)
    except OverflowError:
        since = until
    if not datetime.timedelta() < until - since <= _MOST_REPORT:
        raise webob.exc.HTTPBadRequest(
            "Invalid query parameter 'since': it must be before 'until' and "
            f"now, and at most {_MOST_REPORT.days} days before 'until'.")
    found = request_history.run_times(
        backlog_history.between(call.services.database, since, until,
                                project_id), since, until, _PARTS)
    return {'requests_report': {
        'since': views.time(since), 'until': views.time(until),
        'classes': [_course(name, found[name], since, until)
                    for name in sorted(found)]}}


def _course(name, course, since, until):
    length = (until - since) / len(course.parts)
    return {
        'class': name,
        'requests': course.requests,
        'running_s': course.total.running_us // 1_000_000,
        'waiting_s': course.total.waiting_us // 1_000_000,
        'starting_s': course.total.binding_us // 1_000_000,
        'availability': _share(course.total),
        'series': [{'time': views.time(since + number * length),
                    'availability': _share(times)}
                   for number, times in enumerate(course.parts, 1)],
    }


def _share(times):
    return float(times.availability) if times.total_us else None


def _whose(call):
    """Return the project whose requests are counted, None for all."""
    return call.viewer(policy.BACKLOG_ALL_PROJECTS)


def _now():
    return timeutils.utcnow().replace(microsecond=0)
