# SPDX-License-Identifier: Apache-2.0
"""Options of classes of service, with their promises of availability."""

from oslo_config import cfg
from oslo_config import types

GROUP = 'classes'

OPTS = [
    cfg.BoolOpt(
        'enabled', default=False,
        help="""
Whether preemptible servers may belong to classes of service, which promise a
share of time (M. Carvalho et al., JISA 11, 2020). A server of a class may then
preempt servers of classes whose promises allow it. Off by default, since an
operator has to define the classes.

Servers without a class are not affected. Set the same value for the
schedulers, the API and the engine.
"""),
    cfg.MultiOpt(
        'qos_class', item_type=types.Dict(),
        sample_default={'name': 'silver', 'importance': '2',
                        'availability': '0.9'},
        help="""
A class of service, as fields with values. Up to eight classes; with
``enabled`` at least one. No default, since possible promises depend on the
cloud.

* ``name``: letters, digits, dots, hyphens and underscores. The extra spec
  ``preemptible:class`` of a flavor names the class of its servers.
* ``importance``: a whole number, unique to the class; 1 is the most
  important.
* ``availability``: the share of time that servers are promised to run, above
  0 and up to 1.
* ``safety_margin_s``: how long before a broken promise a server is urgent, in
  seconds; the pass period if it is missing.
* ``overhead_limit``: the share of its time on hosts, from 0 to 1, that an
  urgent server may spend on starting before its own and less important
  classes no longer evict it; by default, and at most, the share of time that
  is not promised.
* ``least_run_s``: how long a server runs after each start before less
  important classes and its own may evict it, in seconds; five minutes if it is
  missing.
* ``open``: ``true`` if any user may ask for it with a request that
  waits; ``false``, if it is missing, leaves it to flavors.
"""),
    cfg.IntOpt(
        'pass_period_s', default=300, min=1,
        help="""
Seconds between two searches for victims for waiting requests of a class. Five
minutes, the default, is five times the cost of restarting an evicted server: a
shorter period would spend much of the servers' time on restarts.
"""),
]


def register_opts(conf):
    conf.register_opts(OPTS, group=GROUP)
