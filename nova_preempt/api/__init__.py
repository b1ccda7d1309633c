# SPDX-License-Identifier: Apache-2.0
"""The REST API: records of preemptions, and questions about them."""
