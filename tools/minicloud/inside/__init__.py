# SPDX-License-Identifier: Apache-2.0
"""Scripts that run in the environment of the services, and import theirs."""
