# SPDX-License-Identifier: Apache-2.0

"""Turn warnings that code of nova_preempt causes into errors.

Python runs this at its start if its directory is on PYTHONPATH, as "make" sets
it for tests. PYTHONWARNINGS takes whole module names only, not packages.
Warnings of other packages are not affected.
"""

import warnings

_simplefilter = warnings.simplefilter


def simplefilter(action, *args, **kwargs):
    """Keep our filter above the one that Nova's test fixtures install."""
    _simplefilter(action, *args, **kwargs)
    if action == 'once':
        strict()


def strict():
    """Raise warnings that are attributed to our modules."""
    warnings.filterwarnings('error', module=r'nova_preempt(\.|$)')


strict()
warnings.simplefilter = simplefilter
