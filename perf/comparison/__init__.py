# SPDX-License-Identifier: Apache-2.0
"""What perf/compare.py is made of: cases, the programs they run, statistics, reports."""
