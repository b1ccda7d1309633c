# SPDX-License-Identifier: Apache-2.0
"""JSON Schemas of requests and responses about energy."""

from nova_preempt.api import schemas
from nova_preempt.core.energy import power_steps

_object = schemas.make_object

# No host does a zettaflop a second, or draws a gigawatt.
_MAX_FLOPS = 1e21
_MAX_WATTS = 1e9

_NUMBER = {'type': 'number'}
_AMOUNT = {'type': ['number', 'null'], 'minimum': 0}
_FIGURES = {'flops': {**_AMOUNT, 'maximum': _MAX_FLOPS},
            'watts': {**_AMOUNT, 'maximum': _MAX_WATTS},
            'idle_watts': {**_AMOUNT, 'maximum': _MAX_WATTS}}

#: Members of a point that are means of its samples.
MEANS = ('watts_saved', 'hosts_on', 'hosts_busy', 'hosts_asleep',
         'cores_total', 'cores_off', 'cores_used')

FIGURES = schemas.make_body('figures', {}, {
    **_FIGURES, 'source': schemas.TEXT})

FIGURES_OF_HOST = _object({
    **_FIGURES, 'flops_per_watt': _AMOUNT, 'measured_at': schemas.NULLABLE,
    'source': schemas.STRING})
FIGURES_ANSWER = _object({'figures': FIGURES_OF_HOST})

_TOTALS = dict.fromkeys((
    'res_idle_core_s', 'e_savings_core_s', 'delay_req', 'used_kwh',
    'saved_kwh'), _NUMBER)

ENERGY_ANSWER = _object({'energy': _object({
    'watts': _AMOUNT, 'sampled_at': schemas.NULLABLE, 'hosts': schemas.COUNTS,
    'since': schemas.STRING, **_TOTALS}, section='energy')})

HOSTS_ANSWER = _object({'hosts': schemas.array(_object({
    'name': schemas.STRING,
    'state': {'type': 'string', 'enum': list(power_steps.STATES)},
    'since': schemas.NULLABLE, 'reason': schemas.STRING,
    'idle_intervals': schemas.COUNT, 'boot_s': _AMOUNT, 'watts_now': _AMOUNT,
    'figures': {**FIGURES_OF_HOST, 'type': ['object', 'null']},
}, section='energy_host'))}, section='energy_hosts')

REPORT_ANSWER = _object({'report': _object({
    'since': schemas.STRING, 'until': schemas.STRING, **_TOTALS,
    'series': schemas.array(_object({
        'time': schemas.STRING, 'watts': {'type': ['number', 'null']},
        **dict.fromkeys(MEANS, _NUMBER)}, section='energy_point'),
        maxItems=1000)})})
