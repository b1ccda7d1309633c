# SPDX-License-Identifier: Apache-2.0
"""Runs one call for many items in parallel, or in batches.

Calls to Nova and Placement for many servers take too long one after another.
"""

import concurrent.futures
import contextvars

THREADS = 8

# The most uuids, or tags, that a database query names.
MANY = 500


def call(function, items):
    """Return the function's results, in the order of the items.

    :raises Exception: the first one that the function raises, once it was
        called for all items
    """
    items = list(items)
    if len(items) < 2:
        return [function(item) for item in items]
    with concurrent.futures.ThreadPoolExecutor(
            min(THREADS, len(items)), thread_name_prefix='parallel') as pool:
        futures = [pool.submit(contextvars.copy_context().run, function, item)
                   for item in items]
    return [future.result() for future in futures]


def batches(items):
    """Yield the items sorted, in batches as large as a query may name."""
    items = sorted(items)
    for start in range(0, len(items), MANY):
        yield items[start:start + MANY]
