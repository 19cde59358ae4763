//! A case as the page sends it: a few lines of JSON, then the operations as text.
//!
//! Three lengths of 32 bits each stand first (JSON, preparation, body), then the three texts. A
//! body of a million calls so need not be escaped.

use serde::Deserialize;
use sim::profile::BoardProfile;
use sim::run::{ChipState, KernelProfile, Mount};

const LENGTHS: usize = 3;
const LENGTH_BYTES: usize = 4;

/// The JSON part.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Header {
    board: BoardProfile,
    kernel: KernelProfile,
    fs: String,
    read_ahead_kib: u32,
    erases: Vec<u32>,
    bad_blocks: Vec<u32>,
    /// Rows of requests and flash operations that are kept at most; none are recorded if it is 0.
    rows_max: usize,
}

/// A case and its stack.
pub struct Request<'a> {
    pub board: BoardProfile,
    pub kernel: KernelProfile,
    pub fs: Mount,
    pub read_ahead_kib: u32,
    pub chip: ChipState,
    pub with_rows: bool,
    pub rows_max: usize,
    pub prepare: &'a str,
    pub body: &'a str,
}

impl<'a> Request<'a> {
    /// Reads a request, or says why it is none.
    pub fn read(bytes: &'a [u8]) -> Result<Request<'a>, String> {
        let (lengths, mut rest) = bytes
            .split_at_checked(LENGTHS * LENGTH_BYTES)
            .ok_or_else(|| "a request without its lengths".to_owned())?;
        let mut texts = [""; LENGTHS];
        for (text, length) in texts.iter_mut().zip(lengths.chunks_exact(LENGTH_BYTES)) {
            let length = u32::from_le_bytes(length.try_into().expect("four bytes")) as usize;
            let (own, after) = rest
                .split_at_checked(length)
                .ok_or_else(|| "a request that is cut short".to_owned())?;
            *text = std::str::from_utf8(own).map_err(|error| error.to_string())?;
            rest = after;
        }
        let [header, prepare, body] = texts;
        let header: Header = serde_json::from_str(header).map_err(|error| error.to_string())?;
        header.board.check()?;
        let fs = header.fs.parse().map_err(|error: sim::run::MountError| error.to_string())?;
        let chip = ChipState {
            erases: header.erases,
            bad_blocks: header.bad_blocks,
            ..ChipState::default()
        };
        Ok(Request {
            board: header.board.driven_by(&header.kernel.kernel),
            kernel: header.kernel,
            fs,
            read_ahead_kib: header.read_ahead_kib,
            chip,
            with_rows: header.rows_max > 0,
            rows_max: header.rows_max,
            prepare,
            body,
        })
    }
}
