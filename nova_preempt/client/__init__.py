# SPDX-License-Identifier: Apache-2.0
"""Commands of openstackclient, which call the API with nova_preempt.sdk."""
