# SPDX-License-Identifier: Apache-2.0
"""Options of classes of service, with their promises of availability."""

from oslo_config import cfg
from oslo_config import types

GROUP = 'classes'

OPTS = [
    cfg.BoolOpt(
        'enabled', default=False,
        help="""
Whether preemptible servers may be of a class, to which a share of time is
promised (M. Carvalho et al., JISA 11, 2020). One of a class may then end
others of a class, where their promises allow it, so it is off, the default,
until an operator has said which classes there are.

Servers of no class are as before in any case. Set it alike for the schedulers,
the API and the engine.
"""),
    cfg.MultiOpt(
        'qos_class', item_type=types.Dict(),
        sample_default={'name': 'silver', 'importance': '2',
                        'availability': '0.9'},
        help="""
A class of service, as fields with values. There may be eight of them; with
``enabled`` there must be one. It has no default, since what can be promised
depends on the cloud.

* ``name``: letters, digits, dots, hyphens and underscores. A flavor has its
  servers be of the class by the extra spec ``preemptible:class``.
* ``importance``: a whole number, another one for each class; 1 is the most
  important.
* ``availability``: the share of time that servers are promised to run, above
  0 and up to 1.
* ``safety_margin_s``: how long before a broken promise a server is urgent, in
  seconds; the pass period if it is missing.
* ``overhead_limit``: which share of its time on hosts may go into getting
  there before an urgent server is ended no more for its own class or a less
  important one, from 0 to 1; what is not promised if it is missing, and never
  more.
* ``least_run_s``: how long a server runs each time before only more important
  classes end it, in seconds; five minutes if it is missing.
* ``open``: ``true`` if any user may ask for it with a request that
  waits; ``false``, if it is missing, leaves it to flavors.
"""),
    cfg.IntOpt(
        'pass_period_s', default=300, min=1,
        help="""
How often it is looked for somebody to end for requests of a class that wait,
in seconds. Five minutes, the default, is five times what it costs to get an
evicted server back: more often, and much of the time of servers would go into
coming back.
"""),
]


def register_opts(conf):
    conf.register_opts(OPTS, group=GROUP)
