//! rtime: fs/jffs2/compr_rtime.c of 6.1. That of 2.6.37 differs for pieces of up to three bytes,
//! which no node gets smaller by.
//!
//! Every byte is stored with the number of bytes after it that are the same as those after its last
//! occurrence (or, of a byte that is new, as those at the beginning), up to 255: two bytes for each
//! such run.

use super::work::RtimeWork;

const RUN_BYTES_MAX: usize = 255;

/// What there is to do with random bytes: it ends when there is no room for another two bytes.
pub(super) fn work_on_random(bytes: usize, room: usize) -> RtimeWork {
    RtimeWork { pairs: bytes.min(room / 2) as u32, run_bytes: 0 }
}

/// Bytes taken and bytes given, if that is less; as many are taken as `room` has space for. And
/// what it took, if it was tried.
pub(super) fn compress(data: &[u8], room: usize) -> (Option<(usize, usize)>, Option<RtimeWork>) {
    if room <= 3 {
        return (None, None);
    }
    let mut after_last = [0_u16; 256];
    let (mut taken, mut given) = (0, 0);
    while taken < data.len() && given <= room - 2 {
        let last = &mut after_last[data[taken] as usize];
        taken += 1;
        let back = usize::from(*last);
        *last = taken as u16;
        let longest = RUN_BYTES_MAX.min(data.len() - taken);
        let alike = data[taken..taken + longest].iter().zip(&data[back..]);
        taken += alike.take_while(|(one, other)| one == other).count();
        given += 2;
    }
    let pairs = given / 2;
    let work = RtimeWork { pairs: pairs as u32, run_bytes: (taken - pairs) as u32 };
    ((given < taken).then_some((taken, given)), Some(work))
}
