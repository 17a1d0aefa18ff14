"""Asks the server which pods of a snapshot it would delete, and why. The snapshot is JSON on standard input, as in docs/examples/decide.json."""

import sys

import grpc
from google.protobuf import json_format

from decree_client.v1 import decision_service_pb2 as service, decision_service_pb2_grpc as services

request = json_format.Parse(sys.stdin.read(), service.DecideRequest())
answer = services.DecisionServiceStub(grpc.insecure_channel(sys.argv[1])).Decide(request)
for victim in answer.decision.deletes:
    print(victim.pod.name, victim.reason.detail)
