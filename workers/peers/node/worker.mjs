// A worker whose other end is a thread of worker_threads, over a MessageChannel. The contract is docs/WORKERS.md. Every block is an
// ArrayBuffer of its own, which is transferred. The queue of a port has no limit, so the receiver grants the sender credit in blocks.

import fs from 'node:fs';
import { MessageChannel, Worker, isMainThread, workerData } from 'node:worker_threads';
import { once } from 'node:events';

const PERIOD = 256;
const now = () => process.hrtime.bigint(); // CLOCK_MONOTONIC

class Refusal extends Error {}

function number(name, text, least) {
  const value = /^\d{1,30}$/.test(text) ? BigInt(text) : -1n;
  if (value < least || value >= 2n ** 63n) {
    throw new Refusal(`${name} is a decimal number from ${least} to 2^63 - 1, not ${JSON.stringify(text)}`);
  }
  return Number(value);
}

function parse(words) {
  const [role, bytes, block, warmup, result] = words;
  if (words.length !== 5 || (role !== 'pair' && role !== 'trip')) {
    throw new Refusal('wanted: pair|trip BYTES BLOCK WARMUP RESULT; the other end is a thread of this program');
  }
  const job = {
    trips: role === 'trip',
    bytes: number('BYTES', bytes, 1n),
    block: number('BLOCK', block, 1n),
    warmup: number('WARMUP', warmup, 0n),
    result,
  };
  if (BigInt(bytes) + BigInt(warmup) >= 2n ** 63n) {
    throw new Refusal('BYTES and WARMUP together exceed 2^63 - 1');
  }
  job.total = job.bytes + job.warmup;
  job.messageMax = Math.min(job.block, Math.max(job.warmup, job.bytes, 1));
  // Messages that are sent and not yet received, at most: 1 MiB of them, at least 16 and at most 1024.
  job.depth = Math.min(Math.max(Math.floor(2 ** 20 / job.messageMax), 16), 1024);
  return job;
}

/** The number of bytes, and their XOR in words of 32 bits, which are reduced to a byte at the end. */
class Arrived {
  bytes = 0;
  folded = 0;

  add(message) {
    this.bytes += message.length;
    const words = message.length >> 2;
    let folded = this.folded;
    if (words > 0) {
      const view = new Int32Array(message.buffer, 0, words);
      for (let i = 0; i < words; i++) {
        folded ^= view[i];
      }
    }
    for (let i = words << 2; i < message.length; i++) {
      folded ^= message[i];
    }
    this.folded = folded;
  }

  report(job, ready) {
    let xor = this.folded ^ (this.folded >>> 16);
    xor = (xor ^ (xor >>> 8)) & 0xff;
    fs.appendFileSync(job.result, `recv bytes=${this.bytes} xor=${xor} ready_ns=${ready} ended_ns=${now()}\n`);
    if (this.bytes !== job.total) {
      throw new Error(`received ${this.bytes} bytes instead of ${job.total}`);
    }
  }
}

/** Calls `use` with every message until all bytes have arrived. */
function receiveAll(job, port, use) {
  return new Promise((resolve) => {
    let bytes = 0;
    const take = (message) => {
      bytes += message.length;
      use(message);
      if (bytes >= job.total) {
        port.close();
        resolve();
      }
    };
    port.on('message', take);
  });
}

/** The thread: checks what arrives and grants the sender credit, or sends everything back. */
async function threadEnd({ job, port }) {
  const arrived = new Arrived();
  const ready = now();
  let taken = 0;
  const grant = Math.max(job.depth >> 1, 1);
  await receiveAll(job, port, (message) => {
    if (job.trips) {
      port.postMessage(message, [message.buffer]);
      return;
    }
    arrived.add(message);
    taken += 1;
    if (taken % grant === 0) {
      port.postMessage(grant);
    }
  });
  if (!job.trips) {
    arrived.report(job, ready);
  }
}

/** The main thread: sends the stream, and in round trips checks what comes back. */
async function mainEnd(job, port, thread) {
  const sequence = Uint8Array.from({ length: job.messageMax + PERIOD }, (_, i) => i);
  const arrived = new Arrived();
  const state = { position: 0, began: undefined, credit: job.depth };
  const ready = now();

  /** Sends the next block. */
  const post = () => {
    if (state.began === undefined && state.position >= job.warmup) {
      state.began = now();
    }
    const end = state.position < job.warmup ? job.warmup : job.total;
    const length = Math.min(job.block, end - state.position);
    const begin = state.position % PERIOD;
    const block = sequence.slice(begin, begin + length);
    port.postMessage(block, [block.buffer]);
    state.position += length;
  };
  /** Sends until the credit is used up; the handler that adds credit calls it again. */
  const advance = () => {
    while (state.credit > 0 && state.position < job.total) {
      state.credit -= 1;
      post();
    }
  };

  const ended = once(thread, 'exit');
  if (job.trips) {
    state.credit = 1;
    const answered = receiveAll(job, port, (message) => {
      arrived.add(message);
      state.credit = 1;
      advance();
    });
    advance();
    await answered;
    arrived.report(job, ready);
  } else {
    port.on('message', (granted) => {
      state.credit += granted;
      advance();
    });
    advance();
  }
  const [status] = await ended;
  if (status !== 0) {
    throw new Error(`the other end ended with status ${status}`);
  }
  fs.appendFileSync(job.result, `send bytes=${state.position} ready_ns=${ready} began_ns=${state.began ?? now()}\n`);
}

async function main(words) {
  try {
    const job = parse(words);
    const { port1, port2 } = new MessageChannel();
    const thread = new Worker(new URL(import.meta.url), { workerData: { job, port: port2 }, transferList: [port2] });
    await mainEnd(job, port1, thread);
    return 0;
  } catch (error) {
    process.stderr.write(`node worker: ${error.message}\n`);
    return error instanceof Refusal ? 2 : 1;
  }
}

if (isMainThread) {
  process.exit(await main(process.argv.slice(2)));
} else {
  await threadEnd(workerData);
}
