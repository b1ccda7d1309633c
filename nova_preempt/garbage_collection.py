# SPDX-License-Identifier: Apache-2.0
"""Settings of Python's garbage collector.

What is garbage in cycles, as Nova's objects often are, and has lived for a
moment Python collects after some 70,000 more objects, and a quarter as many
as there are. A service imports and sets up some 270,000, which stay for ever:
what hundreds of requests have left would wait, as tens of megabytes.
"""

import gc


def settle():
    """Look only after what comes from now on, and more often.

    For a service that is about to serve, in the process that does: not
    before a fork.
    """
    gc.collect()
    gc.freeze()
    # So that it counts how many are left: hardly any.
    gc.collect()
    # The first two are the default but in Python 3.13, where 2,000 new objects
    # come before a look at the youngest.
    gc.set_threshold(700, 10, 1)
