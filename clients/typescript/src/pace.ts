/** A token bucket for creates: a burst at once, and then a number per second. 0 a second means no limit. @internal */
export class Pace {
  /** If negative, the number of creates that wait. */
  private tokens: number;
  private atMs: number | undefined;

  constructor(private readonly perSecond: number, private readonly burst: number) {
    this.tokens = burst;
  }

  /** Takes a token and returns the wait in milliseconds. If the wait is longer than `longestMs`, takes no token and returns the reason. */
  reserve(nowMs: number, longestMs: number): number | string {
    if (this.perSecond <= 0) return 0;
    if (this.atMs !== undefined) this.tokens = Math.min(this.burst, this.tokens + ((nowMs - this.atMs) / 1_000) * this.perSecond);
    this.atMs = nowMs;
    const waitMs = (Math.max(0, 1 - this.tokens) / this.perSecond) * 1_000;
    if (waitMs > longestMs) return `pace: ${this.perSecond} creates a second are allowed, and more are waiting than may start in time`;
    this.tokens--;
    return waitMs;
  }
}
