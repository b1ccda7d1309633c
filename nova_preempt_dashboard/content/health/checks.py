# SPDX-License-Identifier: Apache-2.0
"""Checks of the services, by calls that need them."""

from concurrent import futures
import dataclasses
import datetime
import time

from django.utils import timezone
from django.utils import translation
from django.utils.translation import gettext as _

from nova_preempt_dashboard import api as apis
from nova_preempt_dashboard import notices
from nova_preempt_dashboard import periods
from nova_preempt_dashboard import words

#: A sample of power that is older is a warning.
SAMPLE_AGE = datetime.timedelta(minutes=15)


@dataclasses.dataclass(frozen=True)
class Check:
    """:ivar level: 'good', 'warning' or 'bad'
    :ivar seconds: that the service took to answer
    """

    name: str
    level: str
    text: str
    seconds: float


def run(api, now):
    """Return a Check for each service; they are asked at the same time."""
    here = translation.get_language(), timezone.get_current_timezone()
    # Alone, for it is the first to use the connection.
    pauses = _check(_('API: pauses'), _pauses, api, now, *here)
    others = {_('Engine: hosts'): _hosts, _('Scheduler: chances'): _chances,
              _('Backlog'): _backlog, _('Power control'): _power,
              _('Power draw'): _samples,
              _('Preemptions of the last day'): _preemptions}
    with futures.ThreadPoolExecutor() as pool:
        found = [pool.submit(_check, *item, api, now, *here)
                 for item in others.items()]
    return [pauses, *[each.result() for each in found]]


def _check(name, function, api, now, language, zone):
    start = time.monotonic()
    # A thread does not have the language and the time zone of the user.
    with translation.override(language), timezone.override(zone):
        try:
            level, text = function(api, now)
        except apis.RequestFailed as exc:
            level, text = 'bad', str(exc)
    return Check(name, level, text, round(time.monotonic() - start, 2))


def _pauses(api, _now):
    found = [str(words.of(words.SUBSYSTEM, item.what))
             for item in api.pauses()]
    if found:
        return 'warning', _('Paused: %(what)s.') % {'what': ', '.join(found)}
    return 'good', _('Nothing is paused.')


def _hosts(api, now):
    hosts = api.hosts(**periods.at(now))
    down = [host.name for host in hosts if host.state != 'up']
    if down:
        return 'warning', _('%(count)s of %(total)s hosts are down: '
                            '%(names)s.') % {
            'count': len(down), 'total': len(hosts),
            'names': ', '.join(down[:5])}
    return 'good', _('All %(total)s hosts are up.') % {'total': len(hosts)}


def _chances(api, _now):
    flavors = [item.id for item in api.flavors()
               if notices.is_preemptible_flavor(item, api.marks)][:1]
    if not flavors:
        return 'warning', _('There is no preemptible flavor to ask about.')
    api.placement_chances(flavors)
    return 'good', _('It answers.')


def _backlog(api, _now):
    # Not the plan of the backlog, which takes seconds for many requests.
    states = api.backlog_statistics(hours=1).total['requests_by_status']
    return 'good', _('%(count)s requests wait.') % {
        'count': states.get('waiting', 0)}


def _power(api, _now):
    failed = [item.name for item in api.energy_hosts()
              if item.state == 'failed']
    if failed:
        return 'bad', _('These hosts failed to boot: %(names)s.') % {
            'names': ', '.join(failed[:5])}
    return 'good', _('No host failed to boot.')


def _samples(api, now):
    sampled = periods.parse(api.energy(now).sampled_at)
    if sampled is None:
        return 'warning', _('It is not measured.')
    level = 'good' if now - sampled <= SAMPLE_AGE else 'warning'
    return level, _('The last sample is of %(time)s.') % {
        'time': words.moment(sampled)}


def _preemptions(api, now):
    counts = api.preemption_statistics(since=periods.to_text(
        now - periods.DAY)).total['preemptions_by_status']
    text = ', '.join(f'{words.of(words.PREEMPTION, status)}: {count}'
                     for status, count in sorted(counts.items()))
    level = 'warning' if counts.get('aborted') else 'good'
    return level, text or _('There were none.')
