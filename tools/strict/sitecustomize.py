# SPDX-License-Identifier: Apache-2.0

"""Make errors of the warnings that code of nova_preempt causes.

Python runs this at its start when the directory is on PYTHONPATH, as "make"
puts it for tests. PYTHONWARNINGS would not do: it takes whole module names
only, not a package. Others may warn as much as they like.
"""

import warnings

_simplefilter = warnings.simplefilter


def simplefilter(action, *args, **kwargs):
    """Keep our filter above the one that Nova's test fixtures install."""
    _simplefilter(action, *args, **kwargs)
    if action == 'once':
        strict()


def strict():
    """Raise what is attributed to a module of ours."""
    warnings.filterwarnings('error', module=r'nova_preempt(\.|$)')


strict()
warnings.simplefilter = simplefilter
