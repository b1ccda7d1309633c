# SPDX-License-Identifier: Apache-2.0
"""[preemption], of several servers in one request."""

from oslo_config import cfg

OPTS = [
    cfg.StrOpt(
        'multi_create_score', default='off',
        choices=[
            ('off', 'Nova chooses a host for one server after another'),
            ('dp', ('where what is asked for is most like what is free: the '
                    'product of both, summed up over resource classes')),
            ('ml', 'the fullest hosts that do, so that large rooms stay'),
            ('weights', ('the hosts that Nova\'s weighers like best before '
                         'any of the servers is placed')),
        ],
        help="""
Where the servers of one request go (``openstack server create --min 40``):
off, the default, where Nova's weighers say, one after another. Otherwise one
decision is made for all of them, among the hosts that pass Nova's filters.

Servers of one affinity group then go to a host that has room for all of them.
Nova takes the best host for the first one, and fails if the others do not fit
there. Where no such decision is possible, Nova's weighers choose.

With weights the best host takes as many servers as it has room for, then the
next: all are weighed once, while Nova weighs again after each server, so that
by its default weights servers spread over hosts.

All servers are then claimed in one transaction of Placement. Where it refuses,
since others were faster on one of the hosts, they are claimed one by one, as
they are where ``[preemption]headroom`` has to be left free.

It needs ``nova-preempt[batch]`` for the scheduler.
"""),
]
