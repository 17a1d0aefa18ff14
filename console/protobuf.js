// Reads protobuf messages by a table of their fields. Fields outside the table are skipped.

const text = new TextDecoder('utf-8');

/** The bytes are not a valid message. */
export class Damaged extends Error {}

/** Reads from `at`, and never beyond `end`. */
export class Reader {
  constructor(bytes, at = 0, end = bytes.length) {
    Object.assign(this, { bytes, at, end });
  }

  get done() {
    return this.at >= this.end;
  }

  /** Returns a varint. Values above 2^53 lose their last digits. */
  varint() {
    const from = this.at;
    let value = 0;
    for (let place = 0; place < 10; place += 1) {
      if (this.at >= this.end) throw new Damaged(`a number is cut off at byte ${from}`);
      const byte = this.bytes[this.at];
      this.at += 1;
      value += (byte & 0x7f) * 2 ** (7 * place);
      if (byte < 0x80) return place === 9 ? this.#negative(from) : value;
    }
    throw new Damaged(`no number ends at byte ${this.at}`);
  }

  /** Returns the number that begins at `from` and takes ten bytes: a negative one. */
  #negative(from) {
    let value = 0n;
    for (let place = 0n; place < 10n; place += 1n) value |= BigInt(this.bytes[from + Number(place)] & 0x7f) << (7n * place);
    return Number(BigInt.asIntN(64, value));
  }

  /** Returns a reader of the next piece, whose length comes first. */
  piece() {
    const length = this.varint();
    const from = this.at;
    if (!(length >= 0 && from + length <= this.end)) throw new Damaged(`the ${length} bytes at byte ${from} are not all there`);
    this.at = from + length;
    return new Reader(this.bytes, from, this.at);
  }

  string() {
    const { at, end } = this.piece();
    return text.decode(this.bytes.subarray(at, end));
  }

  skip(wire) {
    if (wire === 0) this.varint();
    else if (wire === 2) this.piece();
    else if (wire === 1 || wire === 5) {
      this.at += wire === 1 ? 8 : 4;
      if (this.at > this.end) throw new Damaged(`a number is cut off at byte ${this.end}`);
    } else throw new Damaged(`no field begins at byte ${this.at}`);
  }
}

/** Decodes a message of the table. Repeated fields are lists; other absent fields are undefined. */
export function decode(reader, messages, name) {
  const fields = messages[name];
  const message = {};
  for (const [field, [, , many]] of Object.entries(fields)) if (many) message[field] = [];
  const byNumber = numbers(fields);
  while (!reader.done) {
    const tag = reader.varint();
    const wire = tag % 8;
    const field = byNumber.get(Math.floor(tag / 8));
    if (!field || wire !== wireOf(field.type)) {
      reader.skip(wire);
      continue;
    }
    const value = one(reader, messages, field.type);
    if (field.many) message[field.name].push(value);
    else message[field.name] = value;
  }
  return message;
}

const known = new WeakMap();

function numbers(fields) {
  let found = known.get(fields);
  if (!found) {
    found = new Map(Object.entries(fields).map(([name, [number, type, many]]) => [number, { name, type, many: Boolean(many) }]));
    known.set(fields, found);
  }
  return found;
}

function wireOf(type) {
  return ['number', 'zigzag', 'bool'].includes(type) ? 0 : 2;
}

function one(reader, messages, type) {
  if (type === 'string') return reader.string();
  if (type === 'bool') return reader.varint() !== 0;
  if (type === 'number') return reader.varint();
  if (type === 'zigzag') {
    const value = reader.varint();
    return value % 2 === 0 ? value / 2 : -(value + 1) / 2;
  }
  return decode(reader.piece(), messages, type);
}
