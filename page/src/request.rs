//! A case as the page sends it: a few lines of JSON, then the operations as text.
//!
//! Three lengths of 32 bits each stand first (JSON, preparation, body), then the three texts. A
//! body of a million calls so need not be escaped. Operations of a micro-benchmark are made here,
//! and a program in one text is parted.

use common::energy::Constants;
use common::layout::parted;
use common::micro::{self, Between, Requests};
use serde::Deserialize;
use sim::profile::BoardProfile;
use sim::run::{ChipState, KernelProfile, Mount};
use std::borrow::Cow;

const LENGTHS: usize = 3;
const LENGTH_BYTES: usize = 4;
/// Each request, and each page of the file, is a line of text: an address may claim billions.
const REQUESTS_MAX: u64 = 262_144;
const FILE_BYTES_MAX: u64 = 1 << 30;
const SEED: u64 = 1;

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
    program: Source,
    /// Pause for background work at the end of a preparation that is made here.
    settle_ns: u64,
    energy: Option<AskedEnergy>,
    lifetime: AskedLifetime,
}

/// Where the operations come from.
#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Source {
    /// Preparation and body follow the JSON.
    Texts,
    /// Both are one text, the body.
    Whole,
    MicroRead(Micro),
    MicroWrite(Micro),
}

/// A micro-benchmark.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Micro {
    pattern: String,
    requests: u64,
    request_bytes: u64,
    file_bytes: u64,
}

/// The board's constants, and what else a mean power depends on.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AskedEnergy {
    pub constants: Constants,
    pub pattern: String,
}

/// What years are worked out from, besides the answer.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AskedLifetime {
    /// Erases that a block endures.
    pub endurance: Option<f64>,
    /// How often the program runs, if that was said.
    pub runs_per_day: Option<f64>,
    /// Erases a day of other programs on the same flash; null is unknown.
    pub others: Vec<Option<f64>>,
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
    pub prepare: Cow<'a, str>,
    pub body: Cow<'a, str>,
    pub fs_name: String,
    pub energy: Option<AskedEnergy>,
    pub lifetime: AskedLifetime,
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
        let (prepare, body) = header.program.operations(header.settle_ns, prepare, body)?;
        let fs_name = header.fs.split(',').next().unwrap_or_default().to_owned();
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
            fs_name,
            energy: header.energy,
            lifetime: header.lifetime,
        })
    }
}

impl Source {
    /// Preparation and body.
    fn operations<'a>(
        self,
        settle_ns: u64,
        prepare: &'a str,
        body: &'a str,
    ) -> Result<(Cow<'a, str>, Cow<'a, str>), String> {
        let (prepare, body) = match self {
            Source::Texts => (prepare.into(), body.into()),
            Source::Whole => {
                let made = parted(body, settle_ns).map_err(|error| error.to_string())?;
                (made.0.into(), made.1)
            }
            Source::MicroRead(of) => {
                let made = micro::reads(&of.pattern, of.requests()?, Between::default());
                let body = made.map_err(|why| why.to_string())?;
                (micro::prepare(of.file_bytes, settle_ns).into(), body.into())
            }
            Source::MicroWrite(of) => {
                let made = micro::writes(&of.pattern, of.requests()?, settle_ns);
                let (prepare, body) = made.map_err(|why| why.to_string())?;
                (prepare.into(), body.into())
            }
        };
        Ok((prepare, body))
    }
}

impl Micro {
    fn requests(&self) -> Result<Requests, String> {
        let &Micro { requests: count, request_bytes: bytes, file_bytes, .. } = self;
        if count > REQUESTS_MAX {
            return Err(format!("more than {REQUESTS_MAX} requests"));
        }
        if file_bytes > FILE_BYTES_MAX {
            return Err(format!("a file of more than {FILE_BYTES_MAX} bytes"));
        }
        Ok(Requests { count, bytes, file_bytes, seed: SEED })
    }
}
