"""A webhook for pods/eviction, so that Decree replaces a pod before its eviction, also without a disruption budget or a cordon.

It refuses the eviction of a ready pod whose ReplicaSet has the annotation decree.dev/surge-on-eviction, as a disruption budget does, and sets
decree.dev/leaving on the pod. Decree creates the replacement, and then deletes the pod. All other evictions are allowed. So are those of pods
that have been leaving for longer than a limit, and all evictions while the API cannot be read.

Anything that reaches the port can have a pod of such a ReplicaSet replaced, so let only the API server reach it where your network permits that.
"""

import argparse
import json
import re
import ssl
from datetime import datetime, timedelta, timezone
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import quote
from urllib.request import Request, urlopen

LEAVING = "decree.dev/leaving"
REQUEST_BYTES_MAX = 1 << 20


def call(path, patch=None):
    """Reads an object of the API, or merges a patch into it."""
    with open(f"{flags.credentials}/token") as token:
        headers = {"Authorization": f"Bearer {token.read()}", "Content-Type": "application/merge-patch+json"}
    body = json.dumps(patch).encode() if patch else None
    request = Request(flags.api + path, body, headers, method="PATCH" if patch else "GET")
    trust = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    trust.load_verify_locations(f"{flags.credentials}/ca.crt")
    with urlopen(request, timeout=3, context=trust) as answer:
        return json.load(answer)


def is_refused(namespace, name, is_dry_run):
    path = f"/api/v1/namespaces/{quote(namespace, safe='')}/pods/{quote(name, safe='')}"
    pod = call(path)
    metadata, status = pod["metadata"], pod["status"]
    is_ready = any(it["type"] == "Ready" and it["status"] == "True" for it in status.get("conditions", []))
    owners = [it for it in metadata.get("ownerReferences", []) if it["kind"] == "ReplicaSet" and it.get("controller")]
    leaving = metadata.get("annotations", {}).get(LEAVING)
    serves = is_ready and status["phase"] == "Running" and "deletionTimestamp" not in metadata
    if not owners or not serves or leaving == "false":
        return False
    owner = call(f"/apis/apps/v1/namespaces/{metadata['namespace']}/replicasets/{owners[0]['name']}")["metadata"]
    surge = owner.get("annotations", {}).get("decree.dev/surge-on-eviction", "")
    if not re.fullmatch(r"true|0*[1-9]\d*%?", surge.strip()):
        return False
    now = datetime.now(timezone.utc)
    try:
        return abs(now - datetime.fromisoformat(leaving)) < timedelta(minutes=flags.limit)
    except (TypeError, ValueError):  # It is absent, or no time, from which the limit could count.
        if not is_dry_run:
            call(path, {"metadata": {"annotations": {LEAVING: now.isoformat(timespec="seconds")}}})
        return True


class Webhook(BaseHTTPRequestHandler):
    timeout = 10

    def answer(self, response):
        body = json.dumps({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": response}).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self):  # The probe.
        self.answer(None)

    def do_POST(self):
        # A negative number would read without end.
        length = min(max(int(self.headers["Content-Length"]), 0), REQUEST_BYTES_MAX)
        request = json.loads(self.rfile.read(length))["request"]
        namespace, name = request["namespace"], request["name"]
        # `kubectl drain --dry-run=server` says so in the eviction alone.
        is_dry_run = request.get("dryRun") or request["object"].get("deleteOptions", {}).get("dryRun")
        response = {"uid": request["uid"], "allowed": True}
        try:
            if is_refused(namespace, name, is_dry_run):
                message = f"Decree creates a replacement, and then deletes {name} (decree.dev/surge-on-eviction)"
                status = {"code": 429, "reason": "TooManyRequests", "message": message}
                response.update(allowed=False, status=status)
        except Exception as error:
            self.log_error("%s/%s is allowed: %r", namespace, name, error)
        self.answer(response)

    def log_request(self, *_):
        pass


class Server(ThreadingHTTPServer):
    def get_request(self):
        connection, address = super().get_request()
        # Read for each connection, as certificates are renewed. The thread of the connection shakes hands.
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(f"{flags.tls}/tls.crt", f"{flags.tls}/tls.key")
        return context.wrap_socket(connection, server_side=True, do_handshake_on_connect=False), address


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.ArgumentDefaultsHelpFormatter)
    parser.add_argument("--port", type=int, default=8443)
    parser.add_argument("--tls", default="/tls", help="folder with tls.crt and tls.key")
    parser.add_argument("--api", default="https://kubernetes.default.svc", help="URL of the API server")
    parser.add_argument("--credentials", default="/var/run/secrets/kubernetes.io/serviceaccount", help="folder with token and ca.crt")
    parser.add_argument("--limit", type=float, default=10, help="minutes after which a pod that still leaves can be evicted")
    flags = parser.parse_args()
    server = Server(("", flags.port), Webhook)
    print(f"listens on {server.server_port}", flush=True)
    server.serve_forever()
