# SPDX-License-Identifier: Apache-2.0
"""The same call for many: several at the same time, or some in each.

What is asked of Nova and Placement for each of many servers takes as long as
all the answers together if it is asked in a row.
"""

import concurrent.futures
import contextvars

THREADS = 8

# A query of a database names at most so many uuids, or tags.
MANY = 500


def call(function, items):
    """What the function returns for each item, in the order of the items.

    :raises Exception: what it raises for the first item for which it does;
        it is called for the others all the same
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
    """Yield the items in their order, as many at once as a query may name."""
    items = sorted(items)
    for start in range(0, len(items), MANY):
        yield items[start:start + MANY]
