//! As many stages as anybody will type, in little memory.

use std::fs;

use crate::common::{Lab, soon, until};

const STAGES: usize = 500;
/// Of our own, however many stages there are.
const MEMORY_MAX_KIB: u64 = 100 << 10;

#[test]
fn five_hundred_stages_give_the_input_back_in_little_memory() {
    for via in ["pipe", "tmpfile"] {
        let lab = Lab::new();
        let input: String = (0..4000).map(|n| format!("line {n}\n")).collect();
        fs::write(lab.here("in"), &input).expect("a file");
        let chain = vec!["cat"; STAGES - 2].join("|");
        // The last stage waits, so that there is time to look.
        let text =
            format!("cat in | {chain} | (cat; touch all; while ! test -e looked; do sleep 0.01; done)");
        let running = lab.start(lab.command(&["run", "--via", via, &text]));
        until("the last stage", soon(), || {
            let status =
                fs::read_to_string(format!("/proc/{}/status", running.pid())).expect("a child of ours");
            let said = || fs::read_to_string(lab.here("../stderr")).unwrap_or_default();
            assert!(!status.contains("(zombie)"), "it ended over {via}: {}", said());
            lab.here("all").exists().then_some(())
        });
        let status =
            fs::read_to_string(format!("/proc/{}/status", running.pid())).expect("hosepipe's status");
        fs::write(lab.here("looked"), "").expect("a file");
        let done = running.wait_within(soon()).expect_code(0);
        assert!(done.stdout == input, "{via}: {} bytes", done.stdout.len());
        let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).expect("the peak");
        let peak: u64 = peak.trim().trim_end_matches(" kB").parse().expect("a number of KiB");
        assert!(peak < MEMORY_MAX_KIB, "{via}: {peak} KiB");
    }
}

#[test]
fn five_hundred_stages_of_which_the_last_stops_reading_all_end() {
    let lab = Lab::new();
    let text = format!("yes | {} | head -1; echo ${{#PIPESTATUS[@]}}", vec!["cat"; STAGES - 2].join("|"));
    let done = lab.run(&["run", &text]).expect_code(0);
    assert_eq!(done.stdout, format!("y\n{STAGES}\n"));
}
