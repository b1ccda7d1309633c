# SPDX-License-Identifier: Apache-2.0
"""Classes of service: who is next, who gives way, and what one gets."""
