"""Reads a page of metrics with Prometheus' own parser, and prints its families as JSON.

    parse_metrics.py text|openmetrics < page
"""

import json
import sys

from prometheus_client.openmetrics import parser as openmetrics
from prometheus_client import parser as text

PARSERS = {
    "text": text.text_string_to_metric_families,
    "openmetrics": openmetrics.text_string_to_metric_families,
}

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
    for family in PARSERS[sys.argv[1]](sys.stdin.read())
]
json.dump(families, sys.stdout)
