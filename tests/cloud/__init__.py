# SPDX-License-Identifier: Apache-2.0
"""Flows and faults on the small cloud that tools/minicloud starts."""

import pathlib
import sys

TOOLS = str(pathlib.Path(__file__).resolve().parents[2] / 'tools')
if TOOLS not in sys.path:
    sys.path.append(TOOLS)
