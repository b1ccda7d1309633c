# SPDX-License-Identifier: Apache-2.0
"""Settings of Python's garbage collector.

Python collects objects in cycles, as Nova's often are, that have survived a
moment only after some 70,000 more allocations and a quarter as many as there
are objects. A service imports some 270,000 objects that are never freed, so
the garbage of hundreds of requests would wait, as tens of megabytes.
"""

import gc


def settle():
    """Exclude the objects of now from collections, and collect more often.

    Call it in the process that serves, before it does, not before a fork.
    """
    gc.collect()
    gc.freeze()
    # So that few objects count as long-lived.
    gc.collect()
    # The first two are Python's defaults except in 3.13, where the youngest
    # generation is collected after 2,000 allocations.
    gc.set_threshold(700, 10, 1)
