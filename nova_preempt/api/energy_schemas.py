# SPDX-License-Identifier: Apache-2.0
"""JSON Schemas of requests and responses about energy."""

from nova_preempt.api import schemas
from nova_preempt.core.energy import power_steps

# No host does a zettaflop, or draws a gigawatt.
_MOST_FLOPS = 1e21
_MOST_WATTS = 1e9


def _number(description, most=None):
    bounds = {'minimum': 0}
    if most is not None:
        bounds['maximum'] = most
    return {'type': ['number', 'null'], **bounds, 'description': description}


_FLOPS = _number('Floating-point operations a second at full load; above '
                 '0.', _MOST_FLOPS)
_WATTS = _number('What the host draws at full load; above 0, and at most '
                 '50 kW.', _MOST_WATTS)
_IDLE_WATTS = _number('What the host draws without servers; at most what it '
                      'draws at full load.', _MOST_WATTS)
_NUMBER = {'type': 'number'}
_NULLABLE = {'type': ['string', 'null']}

INTERVAL = schemas.STATISTICS_QUERY
#: Of the samples of each point.
MEANS = ('watts_saved', 'hosts_on', 'hosts_busy', 'hosts_asleep',
         'cores_total', 'cores_off', 'cores_used')

FIGURES = schemas.make_object({'figures': schemas.make_object({}, {
    'flops': _FLOPS, 'watts': _WATTS, 'idle_watts': _IDLE_WATTS,
    'source': schemas.TEXT}, closed=True)}, closed=True)

FIGURES_OF_HOST = schemas.make_object({
    'flops': _FLOPS, 'watts': _WATTS, 'idle_watts': _IDLE_WATTS,
    'flops_per_watt': _number('flops / watts.'),
    'measured_at': {**_NULLABLE, 'description':
                    'null where a file of the operator has some of them.'},
    'source': schemas.STRING})
FIGURES_ANSWER = schemas.make_object({'figures': FIGURES_OF_HOST})

_TOTALS = {
    'res_idle_core_s': {**_NUMBER, 'description':
                        'Core-seconds that were on and unused.'},
    'e_savings_core_s': {**_NUMBER, 'description':
                         'Core-seconds that were off.'},
    'delay_req': {**_NUMBER, 'description':
                  'What servers have waited for hosts, in parts of the time '
                  'that they ran, for each core.'},
    'used_kwh': {**_NUMBER, 'description':
                 'As far as it was read.'},
    'saved_kwh': {**_NUMBER, 'description':
                  'What hosts that were asleep would have drawn idle, as far '
                  'as that is known.'},
}

ENERGY_ANSWER = schemas.make_object({'energy': schemas.make_object({
    'watts': _number('What the hosts drew when they were read last.'),
    'sampled_at': _NULLABLE,
    'hosts': {'type': 'object', 'description':
              'By state; for "on" as it was when the watts were read.',
              'additionalProperties': {'type': 'integer', 'minimum': 0}},
    'since': schemas.STRING,
    **_TOTALS})})

HOSTS_ANSWER = schemas.make_object({'hosts': schemas.array(
    schemas.make_object({
        'name': schemas.STRING,
        'state': {'type': 'string', 'enum': list(power_steps.STATES)},
        'since': _NULLABLE, 'reason': schemas.STRING,
        'idle_intervals': schemas.COUNT,
        'boot_s': _number('How long its last boot has taken.'),
        'watts_now': _number('As it was read last.'),
        'figures': {**FIGURES_OF_HOST, 'type': ['object', 'null']}}))})

REPORT_ANSWER = schemas.make_object({'report': schemas.make_object({
    'since': schemas.STRING, 'until': schemas.STRING, **_TOTALS,
    'series': schemas.array(schemas.make_object({
        'time': schemas.STRING, 'watts': {'type': ['number', 'null']},
        **dict.fromkeys(MEANS, _NUMBER)}),
        'Means over equal numbers of samples.', maxItems=1000)})})
