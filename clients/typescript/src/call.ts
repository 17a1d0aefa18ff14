/** Makes one call of the cluster. Every call has exactly one outcome. */

import type { MessageInitShape } from "@bufbuild/protobuf";
import { durationFromMs } from "@bufbuild/protobuf/wkt";

import { FailureClass, type OutcomeSchema } from "./decree/v1/batch_pb.js";

/** @internal */
export type Outcome = NonNullable<MessageInitShape<typeof OutcomeSchema>["outcome"]>;

/** Says that an operation had no effect, and why. */
export class Failure extends Error {
  /** `retryAfterMs` is the delay in milliseconds before the next attempt, for the class THROTTLED. */
  constructor(readonly kind: FailureClass, message: string, readonly retryAfterMs = 0) {
    super(message);
  }
}

/** The end of a call: its value, or its error. @internal */
export type Ended<T> = { value: T } | { error: unknown };

/** Makes a call, and resolves when the call has ended, with or without an error. @internal */
export async function attempt<T>(call: () => T | Promise<T>): Promise<Ended<T>> {
  try {
    return { value: await call() };
  } catch (error) {
    return { error };
  }
}

/** Returns the outcome of an error. If the error is not a {@link Failure}, the effect of the call is unknown. @internal */
export function failedBy(error: unknown): Outcome {
  if (!(error instanceof Failure)) return failed(FailureClass.TIMEOUT, String(error));
  const { kind, message, retryAfterMs } = error;
  const retryAfter = Number.isFinite(retryAfterMs) && retryAfterMs > 0 ? durationFromMs(Math.round(retryAfterMs)) : undefined;
  return { case: "failed", value: { class: kind in FailureClass ? kind : FailureClass.UNSPECIFIED, message, retryAfter } };
}

/** @internal */
export function failed(kind: FailureClass, message: string): Outcome {
  return { case: "failed", value: { class: kind, message } };
}
