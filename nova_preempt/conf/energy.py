# SPDX-License-Identifier: Apache-2.0
"""[energy]: what hosts draw and deliver, and when idle ones are asleep."""

from oslo_config import cfg

from nova_preempt.conf import energy_control
from nova_preempt.conf import energy_drivers
from nova_preempt.conf import energy_sources

GROUP = 'energy'

_RANKING_OPTS = [
    cfg.StrOpt(
        'figures_file', default='',
        help="""
A YAML file of what hosts deliver and draw, by node name::

    node1:
      flops: 1.2e12     # at full load, double precision
      watts: 350        # at full load
      idle_watts: 110   # without servers; may be left out

Where ``nova-preempt-benchmark`` has measured a host as well, the file wins:
it is what an operator wrote. It is read again when it changes. Empty, the
default, leaves it to the measurements.
"""),
    cfg.StrOpt(
        'ranking', default='efficiency',
        choices=[
            ('efficiency', 'FLOPS per watt at full load, higher wins'),
            ('marginal', 'the watts that the request adds, fewer win'),
        ],
        help="""
What ``KWRankingWeigher`` prefers hosts by.

``efficiency`` gathers work on hosts that do most of it with a watt.
``marginal`` asks what this one request adds: a host without servers costs its
idle power and the request's share of what full load draws beyond it; a host
that runs servers anyway only that share. It needs ``watts`` and
``idle_watts`` of a host, and fills running hosts before it wakes others.
"""),
    cfg.BoolOpt(
        'rank_by_readings', default=True,
        help="""
Whether ``KWRankingWeigher`` goes by what hosts draw now, where one of
``sources`` tells: a host that draws a tenth more than its figures let expect
at its load is taken to draw a tenth more at any load. Of a host without
``idle_watts``, or without ``watts``, the reading itself is taken for the watts
at full load. A reading older than five minutes does not count. True
by default: the published ranking is by measured watts. False ranks by the
figures alone. It changes nothing without ``sources``.
"""),
    cfg.StrOpt(
        'unknown', default='neutral',
        choices=[
            ('neutral', 'as the mean of the hosts with figures'),
            ('last', 'behind all hosts with figures'),
        ],
        help='How ``KWRankingWeigher`` takes a host without figures. Neutral '
             'by default, so that a host that nobody has measured yet is '
             'neither favoured nor left empty.'),
]

OPTS = (_RANKING_OPTS + energy_control.OPTS + energy_drivers.OPTS +
        energy_sources.OPTS)

#: What nova-preempt-api reads: neither how hosts are switched and watched, nor
#: with which credentials.
API_OPTS = _RANKING_OPTS + energy_control.OPTS


def register_opts(conf):
    conf.register_opts(OPTS, group=GROUP)


def register_api_opts(conf):
    conf.register_opts(API_OPTS, group=GROUP)
