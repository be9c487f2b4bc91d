//! rtrb, a ring for one producer and one consumer, between two threads. Blocks of up to 64 bytes are elements; longer ones go through
//! a ring of bytes by its `Read` and `Write`.

use std::io::{ErrorKind, Read, Result, Write};

use peers::{Backoff, Job, Receiver, Sender, fail, run_threads};
use rtrb::{Consumer, Producer, RingBuffer};

/// Size of a ring of elements, and of a ring of bytes.
const ELEMENTS_BYTES: usize = 64 << 10;
const STREAM_BYTES: usize = 1 << 20;

struct Elements<const N: usize>(Producer<[u8; N]>);
struct Taken<const N: usize>(Consumer<[u8; N]>, [u8; N]);

impl<const N: usize> Sender for Elements<N> {
    fn send(&mut self, bytes: &[u8], _length: usize) {
        let mut element = [0; N];
        element.copy_from_slice(&bytes[..N]);
        let mut full = Backoff::default();
        while self.0.push(element).is_err() {
            full.pause();
        }
    }
}

impl<const N: usize> Receiver for Taken<N> {
    fn receive(&mut self, _length: usize) -> &[u8] {
        let mut empty = Backoff::default();
        self.1 = loop {
            match self.0.pop() {
                Ok(element) => break element,
                Err(_) => empty.pause(),
            }
        };
        &self.1
    }
}

struct Stream(Producer<u8>);
struct Blocks(Consumer<u8>, Vec<u8>);

/// Moves `length` bytes by calls of `step`, each of which moves some of them or fails with `WouldBlock`.
fn move_all(length: usize, mut step: impl FnMut(usize) -> Result<usize>) {
    let (mut done, mut backoff) = (0, Backoff::default());
    while done < length {
        match step(done) {
            Ok(moved) => done += moved,
            Err(error) if error.kind() == ErrorKind::WouldBlock => backoff.pause(),
            Err(error) => fail(1, error),
        }
    }
}

impl Sender for Stream {
    fn send(&mut self, bytes: &[u8], length: usize) {
        move_all(length, |done| self.0.write(&bytes[done..length]));
    }
}

impl Receiver for Blocks {
    fn receive(&mut self, length: usize) -> &[u8] {
        move_all(length, |done| self.0.read(&mut self.1[done..length]));
        &self.1
    }
}

fn elements<const N: usize>(_: &Job) -> (Elements<N>, Taken<N>) {
    let (producer, consumer) = RingBuffer::new(ELEMENTS_BYTES / N);
    (Elements(producer), Taken(consumer, [0; N]))
}

fn stream(job: &Job) -> (Stream, Blocks) {
    let (producer, consumer) = RingBuffer::new(STREAM_BYTES);
    (Stream(producer), Blocks(consumer, vec![0; job.message_max()]))
}

fn main() {
    let job = Job::parse(true);
    match job.block {
        ..=4 => run_threads(&job, elements::<4>),
        ..=8 => run_threads(&job, elements::<8>),
        ..=64 => run_threads(&job, elements::<64>),
        _ => run_threads(&job, stream),
    }
}
