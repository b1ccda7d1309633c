# SPDX-License-Identifier: Apache-2.0

"""Statuses of a victim, and what they mean."""

PENDING = "pending"            # chosen, its space taken, not touched yet
NOTICED = "noticed"            # has notice until its deadline
ENDING = "ending"              # its action was asked for
GONE = "gone"                  # deleted
SHELVED = "shelved"            # shelved and offloaded
STOPPED = "stopped"            # stopped and locked, to be deleted later
MIGRATED = "migrated"          # lives on another host
KEPT = "kept"                  # lives on, with its space
RESTORED = "restored"          # was shelved, and has come back
LEFT = "left"                  # was shelved, and is left to its owner

# Of victims that are still there and may be chosen again.
SURVIVED = (SHELVED, STOPPED, MIGRATED, RESTORED, LEFT)

# Of victims that have left where they were, for a while at least.
LEFT_PLACE = (GONE, SHELVED, STOPPED, RESTORED, LEFT)

# Of victims that may still be where they were.
STAYING = (PENDING, NOTICED, ENDING, KEPT)

# Of victims that need nothing more for their decision.
ENDED = (GONE, SHELVED, STOPPED, MIGRATED, KEPT)

# Of victims that nothing has happened to, if their decision is taken back.
UNTOUCHED = (PENDING, NOTICED)

# Of victims that their owner has lost for a server that never came.
LOST_IN_VAIN = (GONE, SHELVED, STOPPED, ENDING)
