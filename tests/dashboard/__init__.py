# SPDX-License-Identifier: Apache-2.0
"""Tests of the dashboard in a browser, against the small cloud.

"make test-dashboard" runs them; they need Chromium and its driver.
"""

import pathlib
import sys

TOOLS = str(pathlib.Path(__file__).resolve().parents[2] / 'tools')
if TOOLS not in sys.path:
    sys.path.append(TOOLS)
