# SPDX-License-Identifier: Apache-2.0
"""What projects are told of evictions ahead of time: rates, recommendations.
"""
