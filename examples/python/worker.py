"""A worker of a queue that says how busy it is: GET /busy answers the number of jobs that its end would disturb.

With `decree.dev/scale-in-cost: http://:8080/busy` on its Deployment, idle workers are deleted first. The queue is standard input here: a line is
a job, and its number says how many seconds the job takes. On SIGTERM the worker takes no more jobs, and ends after those it has begun.
"""

import argparse
import os
import signal
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

jobs = 0
changed = threading.Condition()
stopping = False


class Busy(BaseHTTPRequestHandler):
    def do_GET(self):
        body = str(jobs).encode() if self.path == "/busy" else b""
        self.send_response(200 if body else 404)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


def count(by):
    global jobs
    with changed:
        jobs += by
        changed.notify_all()


def work(seconds):
    try:
        time.sleep(seconds)
    finally:  # Also after a time that nobody can sleep, such as -1.
        count(-1)
    print(f"done {seconds:g}", flush=True)


def take_jobs():
    for line in sys.stdin:
        try:
            seconds = float(line)
        except ValueError:
            print(f"no number of seconds: {line.strip()}", file=sys.stderr, flush=True)
            continue
        with changed:  # A job is counted before the end is decided, or is not begun.
            if stopping:
                break
            count(1)
        print(f"begun {line.strip()}", flush=True)
        threading.Thread(target=work, args=[seconds]).start()


def main():
    global stopping
    flags = argparse.ArgumentParser(description=__doc__)
    flags.add_argument("--port", type=int, default=8080)
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
    server = ThreadingHTTPServer(("", flags.parse_args().port), Busy)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    threading.Thread(target=take_jobs, daemon=True).start()
    print(f"listens on {server.server_port}", flush=True)
    signal.sigwait({signal.SIGTERM})
    with changed:
        stopping = True
        changed.wait_for(lambda: jobs == 0)
    # The threads that still wait for a line or a request do not hold it up.
    os._exit(0)


if __name__ == "__main__":
    main()
