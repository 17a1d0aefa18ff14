/** Asks the server which pods of a snapshot it would delete, and why. The snapshot is JSON on standard input, as in docs/examples/decide.json. */

import { readFileSync } from "node:fs";

import { fromJson } from "@bufbuild/protobuf";
import { createClient } from "@connectrpc/connect";
import { createGrpcTransport } from "@connectrpc/connect-node";
import { DecideRequestSchema, DecisionService } from "@decree-dev/client/v1/decision_service";

const request = fromJson(DecideRequestSchema, JSON.parse(readFileSync(0, "utf8")));
const client = createClient(DecisionService, createGrpcTransport({ baseUrl: `http://${process.argv[2]}` }));
const { decision } = await client.decide(request);
for (const { pod, reason } of decision?.deletes ?? []) console.log(pod?.name, reason?.detail);
