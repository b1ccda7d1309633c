# SPDX-License-Identifier: Apache-2.0

"""One request: on which host, and who has to leave it."""
