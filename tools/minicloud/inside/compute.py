# SPDX-License-Identifier: Apache-2.0
"""Run nova-compute with the hypervisor of this package.

Nova loads drivers from nova.virt only, so this module is put there.
"""

import sys

# NOTE: first: it chooses between threads and eventlet.
from nova.cmd import compute

from minicloud.inside import hypervisor  # isort: skip

sys.modules['nova.virt.minicloud'] = hypervisor
sys.exit(compute.main())
