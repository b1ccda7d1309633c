# SPDX-License-Identifier: Apache-2.0
"""nova-compute with a hypervisor of ours.

Nova loads what is below nova.virt only, so it is made known there.
"""

import sys

# First of all: it chooses between threads and eventlet.
from nova.cmd import compute

from minicloud.inside import hypervisor  # isort: skip

sys.modules['nova.virt.minicloud'] = hypervisor
sys.exit(compute.main())
