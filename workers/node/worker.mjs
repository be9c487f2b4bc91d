// A worker of hosepipe in JavaScript on Node: `node worker.mjs idiomatic|tuned ROLE ...`, as docs/WORKERS.md requires.
// The idiomatic variant uses child_process with streams; the tuned variant uses synchronous reads and writes of descriptors.

import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { pipeline } from 'node:stream/promises';

// `process` is the global object: importing node:process would open standard input as a stream and make it non-blocking.

/** The length of the byte sequence of the stream: byte i is i mod PERIOD. */
const PERIOD = 256;

/** The longest block that one call of fs.readSync or fs.writeSync takes. */
const BLOCK_BYTES_MAX = 2 ** 31 - 1;

/** The command line is wrong. */
class Refusal extends Error {}

/** Reads ROLE BYTES BLOCK WARMUP RESULT [CHILD...]. */
function parse([role, bytes, block, warmup, result, ...child]) {
  if (result === undefined) {
    throw new Refusal('wanted: send|recv|pair BYTES BLOCK WARMUP RESULT [CHILD...]');
  }
  if (!['send', 'recv', 'pair'].includes(role)) {
    throw new Refusal(`the role is send, recv or pair, not ${JSON.stringify(role)}`);
  }
  if (result === '') {
    throw new Refusal('RESULT is a path and may not be empty');
  }
  if (role === 'pair' && child.length === 0) {
    throw new Refusal('pair wants the command of its child after RESULT');
  }
  if (role !== 'pair' && child.length > 0) {
    throw new Refusal(`${role} takes nothing after RESULT`);
  }
  const job = {
    role,
    bytes: number('BYTES', bytes, 0, Number.MAX_SAFE_INTEGER),
    block: number('BLOCK', block, 1, BLOCK_BYTES_MAX),
    warmup: number('WARMUP', warmup, 0, Number.MAX_SAFE_INTEGER),
    result,
    child,
  };
  job.total = job.warmup + job.bytes;
  if (!Number.isSafeInteger(job.total)) {
    throw new Refusal(`BYTES and WARMUP together are at most ${Number.MAX_SAFE_INTEGER}`);
  }
  return job;
}

/** Parses a decimal argument that has only digits. */
function number(name, text, least, most) {
  const value = /^[0-9]+$/.test(text) ? Number(text) : NaN;
  if (!(value >= least && value <= most)) {
    throw new Refusal(`${name} is a decimal number from ${least} to ${most}, not ${JSON.stringify(text)}`);
  }
  return value;
}

/** CLOCK_MONOTONIC in nanoseconds; a Number would round after 104 days of uptime. */
const now = () => process.hrtime.bigint();

/** The blocks of the whole stream. `marks` gets the time when it was ready, the time when its timed part began, and the bytes sent. */
function* blocks(job, marks) {
  const sequence = Uint8Array.from({ length: PERIOD }, (_, i) => i);
  const pattern = Buffer.alloc(job.block + PERIOD, sequence);
  let position = 0;
  marks.ready = now();
  while (position < job.total) {
    if (position === job.warmup) {
      marks.began = now();
    }
    const until = position < job.warmup ? job.warmup : job.total;
    const begin = position % PERIOD;
    const count = Math.min(job.block, until - position);
    yield pattern.subarray(begin, begin + count);
    position += count;
  }
  marks.began ??= now();
  marks.sent = position;
}

/** The bytes that a receiver has counted so far, and their XOR. */
class Tally {
  received = 0;
  xor = 0;
  ready = now();
  ended = undefined;

  constructor(job) {
    this.job = job;
  }

  add(count, xor) {
    this.xor ^= xor;
    this.received += count;
    if (this.received >= this.job.total) {
      this.ended ??= now();
    }
  }

  /** Appends the result line; then throws if the stream had the wrong length. */
  finish() {
    const { job, received, xor, ready } = this;
    const ended = received === job.total ? (this.ended ?? now()) : now();
    appendResult(job, `recv bytes=${received} xor=${xor} ready_ns=${ready} ended_ns=${ended}\n`);
    if (received !== job.total) {
      throw new Error(`the input has ${received} bytes where ${job.total} were announced`);
    }
  }
}

function appendSent(job, { sent, ready, began }) {
  appendResult(job, `send bytes=${sent} ready_ns=${ready} began_ns=${began}\n`);
}

/** Adds one line to the result file in one write, since the two ends of a pair share it. */
function appendResult(job, line) {
  fs.appendFileSync(job.result, line);
}

/** Throws unless the child's `exit` event reports success. */
function checkChild(job, [status, signal]) {
  if (status !== 0) {
    throw new Error(`the child ${job.child[0]} ended with ${signal ?? `status ${status}`}`);
  }
}

/** Sends by a stream pipeline, which awaits `drain`; receives by asynchronous iteration. */
const idiomatic = {
  async send(job) {
    const marks = {};
    await pipeline(blocks(job, marks), process.stdout, { end: false });
    appendSent(job, marks);
  },

  async recv(job) {
    const tally = new Tally(job);
    for await (const chunk of process.stdin) {
      let xor = 0;
      for (let i = 0; i < chunk.length; i++) {
        xor ^= chunk[i];
      }
      tally.add(chunk.length, xor);
    }
    tally.finish();
  },

  async pair(job) {
    const [command, ...rest] = job.child;
    const child = spawn(command, rest, { stdio: ['pipe', 'inherit', 'inherit'] });
    const marks = {};
    const [exit, stream] = await Promise.allSettled([
      once(child, 'exit'),
      pipeline(blocks(job, marks), child.stdin).then(() => appendSent(job, marks)),
    ]);
    for (const part of [exit, stream]) {
      if (part.status === 'rejected') {
        throw part.reason;
      }
    }
    checkChild(job, exit.value);
  },
};

/** Synchronous calls, each of which makes one system call, and XOR of words of 32 bits. */
const tuned = {
  send(job) {
    const marks = {};
    writeStream(1, job, marks);
    appendSent(job, marks);
  },

  recv(job) {
    const block = Buffer.alloc(Math.ceil(job.block / 4) * 4);
    const words = new Int32Array(block.buffer, block.byteOffset, block.length / 4);
    const tally = new Tally(job);
    for (;;) {
      const count = fs.readSync(0, block, 0, job.block, null);
      if (count === 0) {
        break;
      }
      let xor = foldWords(words, count >> 2);
      for (let i = count & ~3; i < count; i++) {
        xor ^= block[i];
      }
      tally.add(count, xor);
    }
    tally.finish();
  },

  async pair(job) {
    const [command, ...rest] = job.child;
    const [reader, writer] = makePipe();
    const child = spawn(command, rest, { stdio: [reader, 'inherit', 'inherit'] });
    const exit = once(child, 'exit');
    fs.closeSync(reader);
    if (child.pid === undefined) {
      await exit; // rejects with the error
    }
    const marks = {};
    let trouble;
    try {
      writeStream(writer, job, marks);
    } catch (error) {
      trouble = error;
    }
    fs.closeSync(writer);
    if (trouble === undefined) {
      appendSent(job, marks);
    }
    const ended = await exit;
    if (trouble !== undefined) {
      throw trouble;
    }
    checkChild(job, ended);
  },
};

function writeStream(descriptor, job, marks) {
  for (const block of blocks(job, marks)) {
    for (let done = 0; done < block.length; ) {
      done += fs.writeSync(descriptor, block, done);
    }
  }
}

/** The XOR of the first `count` words of a block, reduced to one byte; four sums are computed independently. */
function foldWords(words, count) {
  let a = 0;
  let b = 0;
  let c = 0;
  let d = 0;
  let i = 0;
  for (; i + 7 < count; i += 8) {
    a ^= words[i] ^ words[i + 4];
    b ^= words[i + 1] ^ words[i + 5];
    c ^= words[i + 2] ^ words[i + 6];
    d ^= words[i + 3] ^ words[i + 7];
  }
  for (; i < count; i++) {
    a ^= words[i];
  }
  a ^= b ^ c ^ d;
  a ^= a >>> 16;
  a ^= a >>> 8;
  return a & 0xff;
}

/**
 * A pipe, as two blocking descriptors. Node connects its children by socket pairs and has no call that makes a pipe or a FIFO,
 * so this opens a FIFO that mkfifo(1) made, and removes its name before the first byte is sent.
 */
function makePipe() {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'hosepipe-node-'));
  try {
    const fifo = path.join(folder, 'pipe');
    execFileSync('mkfifo', [fifo]);
    const both = fs.openSync(fifo, 'r+'); // does not block, and neither do the next two opens: fifo(7)
    const ends = [fs.openSync(fifo, 'r'), fs.openSync(fifo, 'w')];
    fs.closeSync(both);
    return ends;
  } finally {
    fs.rmSync(folder, { recursive: true });
  }
}

async function main([name, ...rest]) {
  try {
    if (name !== 'idiomatic' && name !== 'tuned') {
      throw new Refusal(`the first argument is idiomatic or tuned, not ${JSON.stringify(name ?? '')}`);
    }
    const job = parse(rest);
    const way = name === 'tuned' ? tuned : idiomatic;
    await way[job.role](job);
    return 0;
  } catch (error) {
    if (error instanceof Refusal) {
      process.stderr.write(`node worker: ${error.message}\n`);
      return 2;
    }
    process.stderr.write(`node ${name} ${rest[0]}: ${error.message}\n`);
    return 1;
  }
}

process.exitCode = await main(process.argv.slice(2));
