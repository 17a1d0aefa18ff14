/** A token bucket that creates take from: so many at once, and then so many a second. 0 a second means no limit. @internal */
export class Pace {
  /** Below 0, so many creates wait. */
  private tokens: number;
  private atMs: number | undefined;

  constructor(private readonly perSecond: number, private readonly burst: number) {
    this.tokens = burst;
  }

  /** Takes a token and returns how many milliseconds its create has to wait. Where that is longer than `longestMs`, it takes none and returns why. */
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
