// Measures the work of a board with thousands of rows in a frame, and the duration of frames.

/** The number of frames to scroll, and the number of changed rows that must reach the page. */
export const FRAMES = 240;
export const CHANGES = 2_000;

export const measured = {
  /** For the benchmark. The story asserts nothing that depends on the speed of the machine. */
  async console_of_thousands_is_measured({ open, until, act }) {
    const first = await open('#/?sort=name', undefined, false, noteFirstRow);
    const content = await until(first, 'the first row', () => window.firstRow);
    await until(first, 'all rows', () => document.getElementById('summary').textContent.startsWith('5,003 ReplicaSets'));
    const { bytes, files } = first.log;
    const atRest = await first.evaluate(countFrames, FRAMES);
    const scrolled = await first.evaluate(scrollAndCount, FRAMES, CHANGES);
    await act('tell figures', { figures: { content, bytes, files, atRest, scrolled } });
  },
};

/** Runs in a page before its scripts: notes when the first row of the board appears in the document. */
function noteFirstRow() {
  const observer = new MutationObserver(() => {
    if (!document.querySelector('.space .row')) return;
    observer.disconnect();
    window.firstRow = performance.now();
  });
  observer.observe(document, { subtree: true, childList: true });
}

/** Counts frames while the map and the visible rows change. */
function countFrames(wanted) {
  return new Promise((done) => {
    const began = performance.now();
    let [frames, longest, last] = [0, 0, began];
    requestAnimationFrame(function step(at) {
      frames += 1;
      longest = Math.max(longest, at - last);
      last = at;
      if (frames < wanted) requestAnimationFrame(step);
      else done({ frames: (1000 * frames) / (at - began), longest });
    });
  });
}

/**
 * Scrolls for a number of frames and until a number of changed rows have come, on a separate stream. Returns the counts that do not depend on the machine
 * (the most rows in the document, the most mutations between two frames, the frames in which a visible row was missing), and the duration.
 */
export async function scrollAndCount(framesWanted, changesWanted) {
  const abort = new AbortController();
  const answer = await fetch('api/stream?view=board', { signal: abort.signal });
  const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
  let whole = false;
  let rest = '';
  let rows = 0;
  // Counts complete looks at the board, from the first to the last.
  let looked = { rows: 0, at: 0 };
  const read = async () => {
    const { value } = await reader.read();
    const parts = (rest + value).split('\n\n');
    rest = parts.pop();
    for (const part of parts) {
      if (whole && part.startsWith('event: rows')) rows += JSON.parse(part.slice(part.indexOf('[')).trim()).length;
      if (!part.startsWith('event: board')) continue;
      whole = true;
      looked = { rows, at: performance.now() };
    }
  };
  while (!whole) await read();
  const first = looked;
  const reading = (async () => {
    for (;;) await read();
  })().catch(() => {});

  const scroller = document.querySelector('.rows');
  const space = document.querySelector('.space');
  let changed = 0;
  const observer = new MutationObserver((records) => (changed += records.length));
  observer.observe(space, { subtree: true, childList: true, attributes: true, characterData: true });
  const isMissing = () => {
    const { top, bottom } = scroller.getBoundingClientRect();
    const boxes = [...space.querySelectorAll('.row')].map((row) => row.getBoundingClientRect()).sort((a, b) => a.top - b.top);
    const covered = boxes.reduce((reached, box) => (box.top <= reached + 1 ? Math.max(reached, box.bottom) : reached), top);
    return covered < Math.min(bottom, space.getBoundingClientRect().bottom) - 1;
  };
  const began = performance.now();
  const counted = await new Promise((done) => {
    let last = began;
    const counts = { frames: 0, longest: 0, rows: 0, mutations: 0, gaps: 0 };
    requestAnimationFrame(function step(at) {
      counts.frames += 1;
      counts.longest = Math.max(counts.longest, at - last);
      counts.rows = Math.max(counts.rows, space.querySelectorAll('.row').length);
      counts.mutations = Math.max(counts.mutations, changed);
      counts.gaps += isMissing() ? 1 : 0;
      last = at;
      changed = 0;
      if (counts.frames < framesWanted || looked.rows - first.rows < changesWanted) {
        scroller.scrollTop += 40;
        requestAnimationFrame(step);
      } else {
        done({ ...counts, frames: (1000 * counts.frames) / (at - began), scrolled: scroller.scrollTop });
      }
    });
  });
  observer.disconnect();
  abort.abort();
  await reading;
  return { ...counted, changes: looked.rows - first.rows, seconds: (looked.at - first.at) / 1000 };
}
