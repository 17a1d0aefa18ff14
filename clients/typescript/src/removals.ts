/** The number of removals to remember. */
const REMOVALS_MAX = 10_000;

/**
 * The latest removals by UID: the version, and whether the removal was the outcome of a delete. They stop older lists and states from
 * restoring removed objects. @internal
 */
export class Removals {
  private readonly known = new Map<string, { version: bigint; isAnswered: boolean }>();
  private forgotten = 0n;

  add(uid: string, version: bigint, isAnswered = false): void {
    this.known.delete(uid);
    this.known.set(uid, { version, isAnswered });
    if (this.known.size <= REMOVALS_MAX) return;
    for (const [oldest, { version }] of this.known) {
      this.forgotten = version;
      this.known.delete(oldest);
      break;
    }
  }

  discard(uid: string): void {
    this.known.delete(uid);
  }

  /** Returns the version of the removal, or 0. */
  version(uid: string): bigint {
    return this.known.get(uid)?.version ?? 0n;
  }

  isAnswered(uid: string): boolean {
    return this.known.get(uid)?.isAnswered ?? false;
  }

  /** Throws if removals since a mark may have been forgotten. */
  check(since: bigint): void {
    if (since < this.forgotten) throw new RangeError("the mark is too old: take another one and list again");
  }
}
