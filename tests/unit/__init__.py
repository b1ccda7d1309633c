# SPDX-License-Identifier: Apache-2.0

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
