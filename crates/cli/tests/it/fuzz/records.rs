//! Records of every kind, read and shown in every way, and compared with the sound one.

use report::difference::sides;
use report::read::{Loaded, read};
use report::{FORMATS, Style};

use super::fuzz;
use super::input::{Seed, files};

/// The records of the repository that are short enough to be read often.
pub(super) fn seeds() -> Vec<Seed> {
    const BYTES_MAX: usize = 60_000;
    let all = ["../../records", "../../records/0.1.0"].into_iter().flat_map(files);
    all.filter(|seed| seed.bytes.len() < BYTES_MAX).collect()
}

fn show(loaded: &Loaded) -> Result<(), String> {
    for style in [Style::default(), Style { width: 1, unicode: false, ..Style::default() }] {
        let text = report::terminal(&loaded.record, &style, study::view);
        if text.contains(['\u{1b}', '\0']) {
            return Err("a control character on the terminal".to_owned());
        }
    }
    for format in FORMATS {
        // A record that this format cannot show is an error with a sentence.
        if let Err(error) = (format.render)(std::slice::from_ref(loaded), study::view)
            && error.to_string().is_empty()
        {
            return Err(format!("--{} fails without a sentence", format.flag));
        }
    }
    Ok(())
}

#[test]
fn records_of_every_kind() {
    let seeds = seeds();
    let sound: Vec<Loaded> = seeds
        .iter()
        .map(|seed| {
            let text = std::str::from_utf8(&seed.bytes).expect("text");
            read(&seed.name, text).unwrap_or_else(|error| panic!("{error}"))
        })
        .collect();
    fuzz("records", &seeds, |input| {
        let Ok(text) = std::str::from_utf8(input) else { return Ok(()) };
        let damaged = match read("damaged", text) {
            Ok(damaged) => damaged,
            Err(error) if error.to_string().len() > "damaged: ".len() => return Ok(()),
            Err(error) => return Err(format!("no sentence: {error}")),
        };
        show(&damaged)?;
        let same_kind = sound.iter().filter(|other| other.record.kind() == damaged.record.kind());
        for other in same_kind.take(1) {
            let _ = sides::check(other, &damaged, &[sides::figures(other), sides::figures(&damaged)]);
            let _ = report::disjoint_records(&[other.clone(), damaged.clone()]);
        }
        Ok(())
    });
}
