# Licensed under the Apache License, Version 2.0 (the "License"); you may
# not use this file except in compliance with the License. You may obtain
# a copy of the License at
#
#     http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software
# distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the
# License for the specific language governing permissions and limitations
# under the License.
"""[preemption_engine]: what the engine does in the background, and when."""

from oslo_config import cfg

GROUP = 'preemption_engine'

OPTS = [
    cfg.IntOpt(
        'interval_s',
        mutable=True,
        default=10,
        min=1,
        help='How often the engine looks for something to do, in seconds. '
             'Short, so that a maximum run time is kept to the second that '
             'matters to people; each look reads only what has changed.'),
    cfg.IntOpt(
        'restore_at_once',
        mutable=True,
        default=10,
        min=1,
        help='How many shelved servers may be on their way back at once, as '
             'far as there is room for them. What this bounds is the load of '
             'their images. One that takes longer than until its next try '
             'does not count any more.'),
    cfg.IntOpt(
        'restore_timeout_s',
        mutable=True,
        default=7 * 86400,
        min=1,
        help='How long after its end a shelved server is tried to be '
             'restored, in seconds. After a week it is left to its owner, '
             'who can still unshelve it.'),
]


def register_opts(conf):
    conf.register_opts(OPTS, group=GROUP)
