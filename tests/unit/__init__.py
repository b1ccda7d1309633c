# Licensed under the Apache License, Version 2.0 (the "License"); you may
# not use this file except in compliance with the License. You may obtain
# a copy of the License at
#
#      http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software
# distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the
# License for the specific language governing permissions and limitations
# under the License.

# Unit tests run in threads with each release of Nova. Functional tests, which
# borrow from here, have settled it by then.
from nova_preempt.cmd import native_threads  # noqa: F401

# isort: split
import hypothesis

# The same examples everywhere and always, however slow the machine.
hypothesis.settings.register_profile(
    'nova_preempt', derandomize=True, database=None, deadline=None,
    suppress_health_check=[hypothesis.HealthCheck.too_slow,
                           hypothesis.HealthCheck.data_too_large])
hypothesis.settings.load_profile('nova_preempt')
