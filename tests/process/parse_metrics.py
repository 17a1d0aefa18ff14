"""Reads a page of metrics with Prometheus' own parser, and prints its families as JSON.

    parse_metrics.py < page
"""

import json
import sys

from prometheus_client.openmetrics.parser import text_string_to_metric_families

families = [
    {
        "name": family.name,
        "type": family.type,
        "help": family.documentation,
        "samples": [
            {"name": it.name, "labels": it.labels, "value": str(it.value)}
            for it in family.samples
        ],
    }
    for family in text_string_to_metric_families(sys.stdin.read())
]
json.dump(families, sys.stdout)
