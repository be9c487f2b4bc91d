//! crossbeam-channel's bounded channel between two threads. Blocks of up to 64 bytes are values; longer ones are vectors, which
//! are moved.

use crossbeam_channel::bounded;
use peers::{Job, OrFail, Receiver, Sender, run_threads};

struct ValueSender<const N: usize>(crossbeam_channel::Sender<[u8; N]>);
struct ValueReceiver<const N: usize>(crossbeam_channel::Receiver<[u8; N]>, [u8; N]);

impl<const N: usize> Sender for ValueSender<N> {
    fn send(&mut self, bytes: &[u8], _length: usize) {
        let mut value = [0; N];
        value.copy_from_slice(&bytes[..N]);
        self.0.send(value).or_fail("send");
    }
}

impl<const N: usize> Receiver for ValueReceiver<N> {
    fn receive(&mut self, _length: usize) -> &[u8] {
        self.1 = self.0.recv().or_fail("recv");
        &self.1
    }
}

struct VectorSender(crossbeam_channel::Sender<Vec<u8>>);
struct VectorReceiver(crossbeam_channel::Receiver<Vec<u8>>, Vec<u8>);

impl Sender for VectorSender {
    fn send(&mut self, bytes: &[u8], length: usize) {
        self.0.send(bytes[..length].to_vec()).or_fail("send");
    }
}

impl Receiver for VectorReceiver {
    fn receive(&mut self, _length: usize) -> &[u8] {
        self.1 = self.0.recv().or_fail("recv");
        &self.1
    }
}

fn values<const N: usize>(job: &Job) -> (ValueSender<N>, ValueReceiver<N>) {
    let (sender, receiver) = bounded(job.depth());
    (ValueSender(sender), ValueReceiver(receiver, [0; N]))
}

fn vectors(job: &Job) -> (VectorSender, VectorReceiver) {
    let (sender, receiver) = bounded(job.depth());
    (VectorSender(sender), VectorReceiver(receiver, Vec::new()))
}

fn main() {
    let job = Job::parse(true);
    match job.block {
        ..=4 => run_threads(&job, values::<4>),
        ..=8 => run_threads(&job, values::<8>),
        ..=64 => run_threads(&job, values::<64>),
        _ => run_threads(&job, vectors),
    }
}
