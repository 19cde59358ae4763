//! rtime: fs/jffs2/compr_rtime.c of 6.1. That of 2.6.37 differs for pieces of up to three bytes,
//! which no node gets smaller by.
//!
//! A byte is followed by the length, up to 255, of the run after it that repeats the bytes after
//! its last occurrence. A byte that has not occurred yet is compared with the beginning instead.
//! Byte and run together take two bytes.

use super::work::RtimeWork;

const RUN_BYTES_MAX: usize = 255;

/// The work on random bytes. It ends when there is no room for another two bytes.
pub(super) fn work_on_random(bytes: usize, room: usize) -> RtimeWork {
    RtimeWork { pairs: bytes.min(room / 2) as u32, run_bytes: 0 }
}

/// Bytes consumed and produced, if that saves space; as many are consumed as fit into `room`. Also
/// the work, if it was tried.
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
