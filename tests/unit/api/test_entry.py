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
"""What is done before the API answers."""

import subprocess
import sys
import textwrap
import unittest

# In a process of its own: what was loaded stays loaded.
_PROGRAM = textwrap.dedent("""
    import sys
    from oslo_config import cfg
    from nova_preempt.api import entry
    from nova_preempt.cloud import boot_schema
    import nova_preempt.conf

    conf = cfg.ConfigOpts()
    nova_preempt.conf.register_opts(conf)
    conf([], default_config_files=[], default_config_dirs=[])
    for enabled in (False, True):
        conf.set_override('enabled', enabled, 'backlog')
        entry.load(conf)
        print(boot_schema._schemas.cache_info().currsize,
              'nova.objects.request_spec' in sys.modules)
    before = set(sys.modules)
    boot_schema.check({'server': {
        'name': 'a', 'flavorRef': '1', 'imageRef': '', 'networks': 'none'}},
        '2.90')
    print(sorted(set(sys.modules) - before))
""")


class TestLoad(unittest.TestCase):

    def test_what_the_first_request_needs(self):
        """And nothing where there is no backlog."""
        self.assertEqual(
            ['0 False', '1 True', '[]'], subprocess.run(
                [sys.executable, '-c', _PROGRAM], check=True, text=True,
                capture_output=True, timeout=300).stdout.splitlines())
