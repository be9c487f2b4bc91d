//! x
#![allow(missing_docs)]
use pipeline::link::LinkSpec;
use std::process::*;
use std::time::*;
#[test]
fn speed() {
    for t in [
        "pipe",
        "pipe:size=64KiB",
        "fifo",
        "socketpair",
        "unix-stream",
        "tcp",
        "tmpfile",
        "tmpfile:order=sequential",
        "file",
        "pty",
    ] {
        let d = tempfile::tempdir().unwrap();
        let mut best = f64::MAX;
        let mut rep = None;
        for _ in 0..3 {
            let s = Instant::now();
            let mut l = LinkSpec::parse(t).unwrap().connect(d.path()).unwrap();
            let mut w = Command::new("head")
                .args(["-c", "256M", "/dev/zero"])
                .stdout(l.take_write().unwrap())
                .spawn()
                .unwrap();
            l.wait_written(&|| false).unwrap();
            let mut r =
                Command::new("cat").stdin(l.take_read().unwrap()).stdout(Stdio::piped()).spawn().unwrap();
            let mut r2 = Command::new("wc")
                .arg("-c")
                .stdin(r.stdout.take().unwrap())
                .stdout(Stdio::null())
                .spawn()
                .unwrap();
            w.wait().unwrap();
            r.wait().unwrap();
            r2.wait().unwrap();
            rep = Some(l.finish());
            best = best.min(s.elapsed().as_secs_f64());
        }
        println!("{t}: {best:.3} s {rep:?}");
    }
}
#[test]
fn races() {
    for t in ["tmpfile", "file", "tmpfile:order=sequential", "pty"] {
        let d = tempfile::tempdir().unwrap();
        let s = Instant::now();
        for i in 0..150 {
            let mut l = LinkSpec::parse(t).unwrap().connect(d.path()).unwrap();
            let n = (i * 977) % 200000;
            let mut w = Command::new("head")
                .args(["-c", &n.to_string(), "/dev/zero"])
                .stdout(l.take_write().unwrap())
                .spawn()
                .unwrap();
            l.wait_written(&|| false).unwrap();
            let r = Command::new("wc")
                .arg("-c")
                .stdin(l.take_read().unwrap())
                .stdout(Stdio::piped())
                .spawn()
                .unwrap();
            let o = r.wait_with_output().unwrap();
            w.wait().unwrap();
            assert_eq!(String::from_utf8(o.stdout).unwrap().trim(), n.to_string(), "{t}");
            l.finish();
        }
        println!("{t}: {:?} each", s.elapsed() / 150);
    }
}
