//! Which calls of pipe(2) make a pipeline's pipe: those from certain call sites in the shell, which are learnt from examples. The
//! return address of such a site is on the stack at a fixed distance from the call (0, or more if a wrapper is between).

/// Number of words of the stack in a sample.
pub const SLOTS: usize = 128;

/// A call of pipe(2) while learning: for each word of the stack its offset in the shell's file if it is a return address, else 0.
pub type Sample = [usize; SLOTS];

/// Bytes of a written sample; the words have native byte order.
pub const SAMPLE_BYTES: usize = SLOTS * size_of::<usize>();

/// Most call sites from which a shell may make a pipeline's pipe.
pub const SITES_MAX: usize = 8;

/// The call sites at which a shell makes the pipes of pipelines.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(C)]
pub struct Sites {
    /// The word of the stack with the return address.
    pub slot: usize,
    /// The return addresses, as offsets in the shell's file; 0 ends the list.
    pub offsets: [usize; SITES_MAX],
}

/// Finds the call sites of pipelines' pipes. `pipelines` are runs of a shell, each with the number of pipes of its pipelines and
/// all its calls; `others` are the calls of runs without a pipeline.
///
/// `None` if no word of the stack distinguishes them.
pub fn find_sites(pipelines: &[(usize, &[Sample])], others: &[Sample]) -> Option<Sites> {
    (0..SLOTS).find_map(|slot| {
        let mut sites = Sites { slot, offsets: [0; SITES_MAX] };
        let mut known = 0;
        let is_foreign = |offset: usize| others.iter().any(|sample| sample[slot] == offset);
        for (_, samples) in pipelines {
            for offset in samples.iter().map(|sample| sample[slot]) {
                if offset != 0 && !is_foreign(offset) && !sites.offsets[..known].contains(&offset) {
                    *sites.offsets.get_mut(known)? = offset;
                    known += 1;
                }
            }
        }
        let is_known = |sample: &&Sample| sites.offsets[..known].contains(&sample[slot]);
        let counts_match =
            pipelines.iter().all(|(pipes, samples)| samples.iter().filter(is_known).count() == *pipes);
        (known > 0 && counts_match).then_some(sites)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(words: &[(usize, usize)]) -> Sample {
        let mut sample = [0; SLOTS];
        words.iter().for_each(|(slot, offset)| sample[*slot] = *offset);
        sample
    }

    #[test]
    fn the_return_address_distinguishes_them() {
        let (one, two) = ([sample(&[(0, 0x10)])], [sample(&[(0, 0x10)]), sample(&[(0, 0x10)])]);
        let others = [sample(&[(0, 0x20)]), sample(&[(0, 0x30)])];
        let sites = find_sites(&[(1, &one), (2, &two)], &others).expect("found");
        assert_eq!((sites.slot, sites.offsets[0], sites.offsets[1]), (0, 0x10, 0));
    }

    #[test]
    fn below_a_wrapper_the_second_frame_distinguishes_them() {
        let call = |caller| sample(&[(0, 0x99), (3, 0x98), (5, caller)]);
        // With job control a shell makes one more pipe for each pipeline, at another call site.
        let one = [call(0x10), call(0x77)];
        let two = [call(0x10), call(0x77), call(0x14)];
        let sites = find_sites(&[(1, &one), (2, &two)], &[call(0x20), call(0x77)]).expect("found");
        assert_eq!((sites.slot, &sites.offsets[..3]), (5, &[0x10, 0x14, 0][..]));
    }

    #[test]
    fn without_a_difference_there_is_no_result() {
        let (one, two) = ([sample(&[(0, 0x10)])], [sample(&[(0, 0x10)]), sample(&[(0, 0x10)])]);
        assert_eq!(find_sites(&[(1, &one), (2, &two)], &[sample(&[(0, 0x10)])]), None);
        assert_eq!(find_sites(&[(1, &[]), (2, &two)], &[]), None, "a run in which no pipe was seen");
    }
}
