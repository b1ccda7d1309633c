# SPDX-License-Identifier: Apache-2.0
"""Handler of the rates of evictions by flavor and availability zone."""

from oslo_utils import timeutils
import webob.exc

from nova_preempt.api import operation
from nova_preempt.api import policy
from nova_preempt.api import schemas
from nova_preempt.api import views
from nova_preempt.core import eviction_rates
from nova_preempt.db import eviction_samples

#: The microversion that introduced the rates.
SINCE = '1.8'

QUERY = schemas.make_query({
    'flavor': schemas.array(schemas.TEXT, minItems=1,
                            maxItems=schemas.MAX_FLAVORS),
    'availability_zone': schemas.TEXT}, 'eviction_rate')
_NUMBER = {'type': ['number', 'null'], 'minimum': 0}
_RATE = schemas.make_object({
    'flavor': schemas.STRING, 'availability_zone': schemas.NULLABLE,
    'hours': schemas.COUNT, 'evicted_share': schemas.STRING,
    'median_life': schemas.STRING}, {
    'exact_share': _NUMBER, 'median_life_s': _NUMBER,
    'evictions': schemas.COUNT, 'server_hours': _NUMBER}, 'eviction_rate')
ANSWER = schemas.make_object({'eviction_rates': schemas.array(_RATE)})


@operation.serves('GET', '/v1/eviction-rates', policy.EVICTION_RATES, ANSWER,
                  query=QUERY, since=SINCE)
def eviction_rates_list(call):
    """List how often preemptible servers are evicted, by flavor and zone."""
    viewer = call.viewer(policy.ALL_PROJECTS)
    flavors = call.query.get('flavor', ())
    if viewer is not None and not flavors:
        raise webob.exc.HTTPForbidden(
            'Only administrators see all flavors; name some.')
    zone = call.query.get('availability_zone')
    return {'eviction_rates': [
        _view(rate, viewer) for rate in eviction_rates.rates(
            eviction_samples.read(call.services.database, flavors),
            timeutils.utcnow(), viewer) if zone in (None, rate.zone)]}


def _view(rate, viewer):
    """Return a Rate as JSON: ranges, and numbers for administrators."""
    shown = views.render(
        rate, _RATE, {'evicted_share': 'share_range',
                      'median_life': 'life_range'},
        availability_zone=rate.zone or None)
    return shown if viewer is not None else {
        **shown, 'exact_share': rate.share, 'median_life_s': rate.life_s,
        'evictions': rate.evictions, 'server_hours': rate.server_hours}
