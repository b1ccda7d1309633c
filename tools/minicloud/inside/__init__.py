# SPDX-License-Identifier: Apache-2.0
"""What runs in the environment of the services, and may import theirs."""
