# SPDX-License-Identifier: Apache-2.0

"""Statuses of a victim in a decision record."""

PENDING = "pending"            # chosen and claimed, not evicted yet
NOTICED = "noticed"            # has a notice that is not over
ENDING = "ending"              # Nova was asked for its action
GONE = "gone"                  # deleted
SHELVED = "shelved"            # shelved and offloaded
STOPPED = "stopped"            # stopped and locked, to be deleted later
MIGRATED = "migrated"          # was moved to another host
KEPT = "kept"                  # runs on, with its allocations
RESTORED = "restored"          # was shelved, and was unshelved
LEFT = "left"                  # was shelved, and its owner unshelves it

# The server still exists and may be chosen as a victim again.
SURVIVED = (SHELVED, STOPPED, MIGRATED, RESTORED, LEFT)

# The server has left its host, at least for a while.
LEFT_PLACE = (GONE, SHELVED, STOPPED, RESTORED, LEFT)

# The server may still be on its host.
STAYING = (PENDING, NOTICED, ENDING, KEPT)

# The decision has nothing more to do for the victim.
ENDED = (GONE, SHELVED, STOPPED, MIGRATED, KEPT)

# A roll-back of the decision leaves the server as it was.
UNTOUCHED = (PENDING, NOTICED)

# The owner lost the server although the preemptor was never built.
LOST_IN_VAIN = (GONE, SHELVED, STOPPED, ENDING)
