//! Which call of pipe(2) is a pipeline's: told by where in the shell it comes from, which is learnt by example. A shell that
//! makes the pipes of its pipelines from a place of their own has their return address on the stack at one distance from
//! the call (at 0, the return address itself, or further up where a wrapper stands between); other pipes have others there.

/// Words of the stack that are looked at.
pub const SLOTS: usize = 128;

/// What is noted of a call while learning: for each word of the stack the offset in the shell's file that it points at, where that
/// is code and stands behind a call; else 0.
pub type Sample = [usize; SLOTS];

/// Bytes of a sample as it is written while learning, each word in native order.
pub const SAMPLE_BYTES: usize = SLOTS * size_of::<usize>();

/// Where a pipeline's pipe is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(C)]
pub struct Sites {
    /// The word of the stack to look at.
    pub slot: usize,
    /// The offsets that stand there; 0 ends the list.
    pub offsets: [usize; crate::protocol::SITES_MAX],
}

/// Finds what tells a pipeline's pipes from all others. `pipelines` are runs of a shell, each with the number of pipes its
/// pipelines have; `others` are the calls of runs without a pipeline.
///
/// `None` where no word of the stack tells them apart.
pub fn tell_apart(pipelines: &[(usize, &[Sample])], others: &[Sample]) -> Option<Sites> {
    (0..SLOTS).find_map(|slot| {
        let mut sites = Sites { slot, offsets: [0; crate::protocol::SITES_MAX] };
        let mut known = 0;
        let foreign = |offset: usize| others.iter().any(|sample| sample[slot] == offset);
        for (_, samples) in pipelines {
            for offset in samples.iter().map(|sample| sample[slot]) {
                if offset != 0 && !foreign(offset) && !sites.offsets[..known].contains(&offset) {
                    *sites.offsets.get_mut(known)? = offset;
                    known += 1;
                }
            }
        }
        let ours = |sample: &&Sample| sites.offsets[..known].contains(&sample[slot]);
        let all_told = pipelines.iter().all(|(pipes, samples)| samples.iter().filter(ours).count() == *pipes);
        (known > 0 && all_told).then_some(sites)
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
    fn one_frame_tells_them_apart() {
        let (one, two) = ([sample(&[(0, 0x10)])], [sample(&[(0, 0x10)]), sample(&[(0, 0x10)])]);
        let others = [sample(&[(0, 0x20)]), sample(&[(0, 0x30)])];
        let sites = tell_apart(&[(1, &one), (2, &two)], &others).expect("told apart");
        assert_eq!((sites.slot, sites.offsets[0], sites.offsets[1]), (0, 0x10, 0));
    }

    #[test]
    fn behind_a_wrapper_the_second_frame_does() {
        let call = |caller| sample(&[(0, 0x99), (3, 0x98), (5, caller)]);
        // A shell under job control makes one more pipe for each pipeline, from elsewhere.
        let one = [call(0x10), call(0x77)];
        let two = [call(0x10), call(0x77), call(0x14)];
        let sites = tell_apart(&[(1, &one), (2, &two)], &[call(0x20), call(0x77)]).expect("told apart");
        assert_eq!((sites.slot, &sites.offsets[..3]), (5, &[0x10, 0x14, 0][..]));
    }

    #[test]
    fn where_nothing_does_there_is_no_answer() {
        let (one, two) = ([sample(&[(0, 0x10)])], [sample(&[(0, 0x10)]), sample(&[(0, 0x10)])]);
        assert_eq!(tell_apart(&[(1, &one), (2, &two)], &[sample(&[(0, 0x10)])]), None);
        assert_eq!(tell_apart(&[(1, &[]), (2, &two)], &[]), None, "a run in which no pipe was seen");
    }
}
