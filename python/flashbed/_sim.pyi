"""The compiled simulator (bind/src), as Python sees it.

Tables come as columns: `bytes` of little-endian 64-bit integers, in which `NULL` is null. Texts
are integers there too: `case_index` is an index of the cases of the call, `file_index` one of
`file_names`, and the other codes are indices of the constants below.
"""

import builtins
from collections.abc import Callable, Sequence
from typing import Any, Final, Literal, NotRequired, TypeAlias, TypedDict, final, type_check_only

__all__ = [
    "DAY_S",
    "FEW_ERASES",
    "KIND_NAMES",
    "NULL",
    "OP_NAMES",
    "READ_AHEADS",
    "RECLAIMS",
    "TASK_NAMES",
    "VICTIMS",
    "YEAR_S",
    "BootStep",
    "CachedPages",
    "Candidates",
    "Case",
    "Chip",
    "Dump",
    "EnergyConstants",
    "ErrorCurve",
    "Failure",
    "Faults",
    "FormatError",
    "Image",
    "ImageFile",
    "NotModelled",
    "Piece",
    "PieceSizer",
    "Policies",
    "PreparedFile",
    "ReadRequest",
    "Recorded",
    "Results",
    "Run",
    "SpaceRow",
    "SpaceTable",
    "Stretches",
    "Survey",
    "SurveyedFile",
    "activity",
    "body_offset",
    "boot_layout",
    "check_board",
    "check_operations",
    "compressed_size",
    "fresh_space",
    "is_steady",
    "lasting_erases",
    "micro_prepare",
    "micro_reads",
    "micro_writes",
    "own_pace",
    "parted",
    "prepared_files",
    "run_cases",
    "settled",
    "spi_phases",
    "written_file",
    "years",
]

_Column: TypeAlias = bytes
"""Little-endian 64-bit integers."""

NULL: Final[int]
"""The value that means null in a column."""
OP_NAMES: Final[tuple[str, ...]]
"""Names of operations by `op_code`."""
KIND_NAMES: Final[tuple[str, ...]]
"""Names of flash operations by `kind`."""
TASK_NAMES: Final[tuple[str, ...]]
"""Names of tasks by `task`."""
READ_AHEADS: Final[dict[str, str]]
"""The built-in policies of read-ahead: name -> what it does."""
RECLAIMS: Final[dict[str, str]]
"""The built-in policies of reclaim: name -> what it does."""
VICTIMS: Final[dict[str, str]]
"""The built-in policies of collection: name -> what it does."""

class FormatError(ValueError):
    """The first bad line of a flashbed-ops file."""

    line: int
    """Its number, from 1."""
    code: str
    """Its code of agent/PROTOCOL.md."""
    detail: str
    """What is wrong with it, for a person."""

class NotModelled(ValueError):
    """The simulator refuses what it leaves out. The message is `what` and "is not modelled"."""

    what: str
    """What it does not model."""

@final
class Faults:
    """A chip's failures from the mark on."""

    def __new__(
        cls,
        *,
        seed: int = 0,
        endurance_erases: int = 0,
        program_fail_ppm: int = 0,
        program_fail: Sequence[int] = ...,
        erase_fail_ppm: int = 0,
        erase_fail: Sequence[int] = ...,
        bit_flip_ppm: int = 0,
        bits_flipped: int = 0,
        errors: ErrorCurve | None = None,
    ) -> Faults:
        """Makes one.

        - `seed`: decides what is drawn.
        - `endurance_erases`: mean endurance of a block; 0 is endless.
        - `program_fail_ppm`, `erase_fail_ppm`: programs and erases that fail, in millionths.
        - `program_fail`, `erase_fail`: numbers of those that fail, from 1.
        - `bit_flip_ppm`: page reads with wrong bits, in millionths.
        - `bits_flipped`: how many bits of one ECC step are wrong then.
        - `errors`: wrong bits that follow the chip; without `bit_flip_ppm`.
        """

@final
class ErrorCurve:
    """Bit errors of an ECC step over erases, hours and reads (docs/models/bit-errors.md)."""

    def __new__(
        cls,
        *,
        fresh: tuple[int, int, int],
        wear: tuple[int, int, int],
        retention: tuple[int, int, int],
        disturb: tuple[int, int, int],
        age_hours: int = 0,
        reads: int = 0,
    ) -> ErrorCurve:
        """Makes one.

        - `fresh`, `wear`, `retention`, `disturb`: the terms of the expected errors. Of each the
          logarithm to base 2 of its coefficient times 2^24, the power of the erases and the power
          of the hours or reads times 2^16.
        - `age_hours`, `reads`: age of what was programmed before the mark, reads of its block.
        """

@final
class Chip:
    """The chip that a preparation begins with. Cases with the same begin can share it."""

    def __new__(
        cls,
        *,
        erases: Sequence[int] = ...,
        bad_blocks: Sequence[int] = ...,
        faults: Faults | None = None,
    ) -> Chip:
        """Makes one.

        - `erases`: erases of each block of the partition so far; empty is a new chip.
        - `bad_blocks`: blocks of the partition that are bad from the factory.
        - `faults`: what goes wrong from the mark on.
        """

@final
class Candidates:
    """Blocks that a garbage collector could take, as columns of as many values.

    Numbers are memory views, which numpy takes without a copy; -1 is a count that is not known.
    """

    def __len__(self) -> int:
        """How many there are."""
    block: memoryview
    """The number by which the file system knows it: a block of the partition, for UBIFS a LEB."""
    live_bytes: memoryview
    """Bytes that are of use, which the collector has to move."""
    dirty_bytes: memoryview
    """Bytes that were written and are of no use any more."""
    free_bytes: memoryview
    """Bytes that were not written since the block was erased."""
    erases: memoryview
    """The block's erase count."""
    sequence: memoryview
    """When the block was begun, as a count of blocks (YAFFS2)."""
    list: list[str]
    """The kernel's list or category that it is on."""

@final
class CachedPages:
    """Pages of the page cache, as columns of as many values, the oldest last use first.

    Numbers are memory views, which numpy takes without a copy.
    """

    def __len__(self) -> int:
        """How many there are."""
    file: memoryview
    """The file's number in the order of creation."""
    page: memoryview
    """The page of the file."""
    is_dirty: memoryview
    """1 if it has to be written before it can go."""
    uses: memoryview
    """Reads and writes since it came into the cache; 0: it was read ahead, and never used."""
    last_use: memoryview
    """A count of all uses at its last one."""

@final
class Policies:
    """What decides in the kernel's place. Cases with the same object share a preparation."""

    def __new__(
        cls,
        *,
        read_ahead: object | None = None,
        reclaim: object | None = None,
        victim: object | None = None,
    ) -> Policies:
        """Makes one. Raises `ValueError` for a name that no built-in policy has.

        - `read_ahead`: decides which pages are read ahead. An object of a policy's class, the name
          of a built-in policy, or None for the kernel's own.
        - `reclaim`: decides which pages leave a full page cache, in the same form.
        - `victim`: decides which block is collected next, in the same form.
        """

@final
class ReadRequest:
    """What a policy of read-ahead is told. Pages are of 4 KiB."""

    page: int
    """The page that is read."""
    wanted_pages: int
    """Pages that the call still wants, this one included."""
    file_pages: int
    """Pages of the file."""
    max_pages: int
    """The mount's read-ahead window, 1 at least."""
    previous_page: int
    """Where the last read of the open file ended, in pages; -1 before the first."""
    window_start: int
    """The first page of the last window of the open file."""
    window_pages: int
    """Pages of the last window; 0 before the first."""
    marked_pages: int
    """Pages of the last window from its marker on; 0 without a marker."""
    cached_before: int
    """Cached pages right before `page`, `max_pages` at most."""
    missing_pages: int
    """Pages from `page` on that are not cached, `max_pages` at most."""

@final
class Case:
    """A case and the stack that it runs on."""

    def __new__(
        cls,
        *,
        fs: str,
        prepare: str,
        body: str,
        read_ahead_kib: int,
        chip: Chip,
        policies: Policies | None = None,
        cuts: Sequence[int] = ...,
        gc_choices: Sequence[int] = ...,
    ) -> Case:
        """Makes one. Raises `ValueError` for an unknown file system.

        - `fs`: file system and mount options, such as `jffs2` or `ubifs,bulk_read`.
        - `prepare`: a flashbed-ops file up to and with its line `prepared`.
        - `body`: a flashbed-ops file with the operations after that.
        - `read_ahead_kib`: the read-ahead window.
        - `chip`: what `prepare` begins with.
        - `policies`: what decides in the kernel's place; None for the kernel everywhere.
        - `cuts`: the changes of the chip since the mark, from 1, in which power fails.
        - `gc_choices`: what JFFS2 of a kernel chose (`jiffies % 128`) from the mark on, to be
          replayed.
        """

@final
class Recorded:
    """What is recorded besides the counts of each case."""

    def __new__(
        cls,
        *,
        requests: bool = False,
        flash: bool = False,
        wear: bool = False,
        flush: bool = False,
        waits: bool = False,
    ) -> Recorded:
        """Makes one.

        - `requests`, `flash`, `wear`: the tables of these names.
        - `flush`: the columns `flush_` of `cases` and `erases_flush` of `wear`.
        - `waits`: the columns of `requests` that say what each waited for.
        """

@type_check_only
class CaseColumns(TypedDict):
    """Columns of `cases`, a row for each case that ended. Counts are since the mark."""

    case_index: _Column
    """The case."""
    time_ns: _Column
    """Sum of the latencies, pauses left out."""
    flash_time_ns: _Column
    """The chip's part of `time_ns`."""
    elapsed_ns: _Column
    """From the mark to the end of the last operation, pauses included."""
    bytes: _Column
    """Bytes that reads and writes moved."""
    bytes_written: _Column
    """Bytes that writes moved."""
    failed: _Column
    """Calls that failed: `Results.failed` by their result."""
    flash_reads: _Column
    """Read commands of the chip."""
    flash_programs: _Column
    """Programs of the chip."""
    flash_erases: _Column
    """Erases of the chip."""
    bytes_data: _Column
    """Bytes programmed for contents of files."""
    bytes_metadata: _Column
    """Bytes programmed for the file system's own records."""
    bytes_padding: _Column
    """Bytes programmed as padding."""
    bytes_collection: _Column
    """Bytes programmed by garbage collection."""
    bytes_wear_levelling: _Column
    """Bytes programmed by wear levelling."""
    cache_hits: _Column
    """Pages found in the page cache."""
    cache_misses: _Column
    """Pages that were not in the page cache."""
    cache_adds: _Column
    """Pages brought into the page cache, by read-ahead too."""
    erase_count_max: _Column
    """Most erases of a block of the partition since the chip was new."""
    erase_count_mean_milli: _Column
    """Mean erases of these blocks since the chip was new, in thousandths, rounded down."""
    bad_blocks: _Column
    """Bad blocks of the partition at the end."""
    ecc_corrected: _Column
    """Bits that ECC corrected."""
    ecc_failed: _Column
    """ECC steps with more wrong bits than ECC corrects."""
    fresh_bytes: _Column
    """Bytes that df called available when the file system was made; null if unknown."""
    free_bytes: _Column
    """The same when the case was prepared."""
    fresh_pages: _Column
    """Pages of the partition that were programmed when the file system was made."""
    pages: _Column
    """The same when the case was prepared."""
    flush_reads: _Column
    """Read commands of a `sync()` after the case; null unless requested, as all below."""
    flush_programs: _Column
    """Programs of that `sync()`."""
    flush_erases: _Column
    """Erases of that `sync()`."""
    flush_bytes_data: _Column
    """As `bytes_data`, of that `sync()`."""
    flush_bytes_metadata: _Column
    """As `bytes_metadata`, of that `sync()`."""
    flush_bytes_padding: _Column
    """As `bytes_padding`, of that `sync()`."""
    flush_bytes_collection: _Column
    """As `bytes_collection`, of that `sync()`."""
    flush_bytes_wear_levelling: _Column
    """As `bytes_wear_levelling`, of that `sync()`."""
    left_bytes: _Column
    """Bytes that df calls available after it."""

@type_check_only
class RequestColumns(TypedDict):
    """Columns of `requests`, a row for each measured operation."""

    case_index: _Column
    """The case."""
    seq: _Column
    """Number of the operation in its case, from 0."""
    op_code: _Column
    """The operation."""
    file_index: _Column
    """The file that it names or that its slot holds; null if there is none."""
    offset_bytes: _Column
    """Where it begins; null for operations without an offset."""
    length_bytes: _Column
    """The requested bytes; null for operations without a length."""
    start_ns: _Column
    """When it began, since the mark."""
    changes: _Column
    """Programs and erases of the chip since the mark when it returned."""
    latency_ns: _Column
    """How long it took."""
    flash_time_ns: _Column
    """How long of that the chip was busy."""
    result: _Column
    """The system call's return value, or a negative errno."""
    own_flash_ns: NotRequired[_Column]
    """How long the chip was busy with the call's own reads and programs, with `waits`."""
    write_back_ns: NotRequired[_Column]
    """How long it waited for write-back, with `waits`."""
    read_ahead_ns: NotRequired[_Column]
    """How long for pages that no call has requested yet, with `waits`."""
    commit_ns: NotRequired[_Column]
    """How long for a commit or checkpoint, with `waits`."""
    collection_ns: NotRequired[_Column]
    """How long for garbage collection, with `waits`."""
    wear_levelling_ns: NotRequired[_Column]
    """How long for moves of UBI, with `waits`."""
    erase_ns: NotRequired[_Column]
    """How long for erases, with `waits`."""

@type_check_only
class FlashColumns(TypedDict):
    """Columns of `flash`, a row for each operation of the chip."""

    case_index: _Column
    """The case."""
    seq: _Column
    """Number of the flash operation in its case, from 0."""
    start_ns: _Column
    """When it began, since the mark."""
    kind: _Column
    """Read, program or erase."""
    block: _Column
    """The block of the chip."""
    page: _Column
    """The page of the chip; the first of the block for an erase."""
    offset_bytes: _Column
    """First byte in the page; the OOB follows the main area."""
    length_bytes: _Column
    """Bytes of its first transfer."""
    task: _Column
    """The task that it was for."""

@type_check_only
class WearColumns(TypedDict):
    """Columns of `wear`, a row for each block of the partition in each case."""

    case_index: _Column
    """The case."""
    block: _Column
    """The block of the chip."""
    erases: _Column
    """Its erases since the chip was new."""
    erases_measured: _Column
    """Its erases since the mark."""
    erases_flush: _Column
    """Its erases in the `sync()` after the case; null unless requested."""

@final
class Failure:
    """A case without results, and why."""

    @property
    def case_index(self) -> int:
        """The case."""

    @property
    def kind(self) -> Literal["not modelled", "failed"]:
        """Whether the simulator refuses the case because it does not model it."""

    @property
    def message(self) -> str:
        """Why, in one line."""

    @property
    def what(self) -> str | None:
        """What the simulator does not model; None for a case that failed."""

@final
class Run:
    """A stretch of a file's bytes with one origin: zeroes, written by one write, or unreadable.

    Zeroes have neither `errno` nor `seed` nor `block`.
    """

    @property
    def offset_bytes(self) -> int:
        """First byte."""

    @property
    def length_bytes(self) -> int:
        """Bytes."""

    @property
    def errno(self) -> int | None:
        """The negative errno with which they cannot be read."""

    @property
    def seed(self) -> int | None:
        """The seed of the write."""

    @property
    def compressibility(self) -> int | None:
        """The compressibility of the write."""

    @property
    def block(self) -> int | None:
        """The index in `Results.blocks` of its bytes, if no seed generates them."""

@final
class SurveyedFile:
    """A file that was found, and what it holds."""

    @property
    def path(self) -> str:
        """Path from the root."""

    @property
    def size_bytes(self) -> int:
        """Its size."""

    @property
    def runs(self) -> list[Run]:
        """All of it, in order. A copy, as every list of these classes."""

    @property
    def target(self) -> str | None:
        """Where a symbolic link leads; None for a file."""

@final
class Survey:
    """What was found when power came back. Results are 0 or a negative errno."""

    @property
    def case_index(self) -> int:
        """The case."""

    @property
    def change(self) -> int:
        """The change of the chip, from 1, in which power failed."""

    @property
    def mount_result(self) -> int:
        """Of mounting."""

    @property
    def mount_time_ns(self) -> int:
        """How long mounting took."""

    @property
    def files(self) -> list[SurveyedFile]:
        """By path; none if the file system could not be mounted."""

    @property
    def probe_result(self) -> int | None:
        """Of writing, syncing and reading a new file; None if it could not be mounted."""

@final
class Piece:
    """Rows of a case that has not ended."""

    @property
    def case_index(self) -> int:
        """The case."""

    @property
    def requests(self) -> RequestColumns:
        """The next rows of `requests`."""

    @property
    def flash(self) -> FlashColumns:
        """The next rows of `flash`; no columns if there are none."""

    @property
    def file_names(self) -> list[str]:
        """Paths by `file_index` of this piece."""

@type_check_only
class UbiPebs(TypedDict):
    """Physical blocks by what they hold."""

    all: int
    """All of them."""
    used: int
    """Of the table of volumes, of fastmap, and of volumes."""
    free: int
    """With an erase counter and nothing else."""
    stale: int
    """With an older copy of a LEB, or of no volume: to be erased."""
    blank: int
    """Blank: never formatted, or a bad block that nanddump filled up."""
    bad: int
    """Marked bad in the OOB."""
    corrupted: int
    """With a header that is broken."""

@type_check_only
class UbiErases(TypedDict):
    """Erase counters."""

    min: int
    """The smallest."""
    mean_milli: int
    """Their mean, in thousandths."""
    max: int
    """The largest."""
    histogram: list[dict[str, int]]
    """Of each class of counters: `from` and `to`, both included, and how many `pebs`."""

@type_check_only
class UbiFastmap(TypedDict):
    """A fastmap."""

    peb: int
    """The block of its superblock."""
    version: int
    """Its format."""
    pebs: int
    """The blocks it takes."""
    sequence: int
    """When it was written."""
    valid: bool
    """Whether its check sum is right."""

@type_check_only
class UbiVolume(TypedDict):
    """A volume of UBI."""

    id: int
    """Its number."""
    name: str
    """Its name."""
    kind: str
    """`static` or `dynamic`."""
    lebs: int
    """Blocks reserved for it."""
    usable_leb_bytes: int
    """Bytes of a LEB that it can use."""
    alignment: int
    """Its alignment."""
    autoresize: bool
    """Whether it takes all free blocks when it is attached first."""
    upd_marker: bool
    """Whether an update of it was not finished."""
    mapped_lebs: int
    """LEBs that have a block."""
    data_bytes: int
    """Bytes of data: those of a static volume, or of the mapped LEBs of a dynamic one."""

@type_check_only
class UbiImage(TypedDict):
    """A UBI device."""

    peb_bytes: int
    """Bytes of a physical block."""
    min_io_bytes: int
    """Its smallest write, as far as the headers say."""
    vid_offset: int
    """Where the volume header is in a block."""
    data_offset: int
    """Where the data is."""
    leb_bytes: int
    """Bytes of a logical block."""
    image_sequence: int
    """The number that blocks of one image share."""
    pebs: UbiPebs
    """Blocks by what they hold."""
    erases: UbiErases | None
    """How often blocks were erased; none if no header says."""
    fastmap: UbiFastmap | None
    """The fastmap, if there is one."""
    volumes: list[UbiVolume]
    """The volumes."""

@type_check_only
class ImagePart(TypedDict):
    """What lies on a volume; a file without UBI has one part."""

    volume: int | None
    """The volume's number; none without UBI."""
    content: dict[str, Any]
    """Its `format` (ubifs, jffs2, squashfs, erofs, empty, unknown), and the fields of image/src."""

@final
class ImageFile:
    """A path of an image, and its inode."""

    @property
    def path(self) -> builtins.bytes:
        """The path from the root, without a slash in front."""

    @property
    def kind(self) -> str:
        """file, folder, link, block, char, pipe or socket."""

    @property
    def inode(self) -> int:
        """Its inode."""

    @property
    def bytes(self) -> int:
        """Its size."""

    @property
    def stored_bytes(self) -> int:
        """Bytes of its data as they are stored."""

    @property
    def mode(self) -> int:
        """Kind and permissions."""

    @property
    def uid(self) -> int:
        """Its owner."""

    @property
    def gid(self) -> int:
        """Its group."""

    @property
    def links(self) -> int:
        """Names that it has, as the file system says."""

    @property
    def mtime_s(self) -> int:
        """When it was changed last, in seconds."""

    @property
    def target(self) -> builtins.bytes:
        """Of a symbolic link."""

    @property
    def device(self) -> tuple[int, int] | None:
        """Major and minor number of a device."""

    @property
    def xattrs(self) -> int:
        """Extended attributes."""

    @property
    def compressors(self) -> list[str]:
        """Compressors of its data."""

    @property
    def pieces(self) -> int:
        """Nodes of its data."""

@final
class Image:
    """A flash image or a dump, read (docs/models/images.md)."""

    def __new__(
        cls,
        data: bytes,
        *,
        page_bytes: int | None = None,
        oob_bytes: int | None = None,
        block_bytes: int | None = None,
    ) -> Image:
        """Reads one. Raises `ValueError` with one line if it is none.

        - `data`: the file.
        - `page_bytes`, `oob_bytes`: the chip's page and its OOB, if the file has it.
        - `block_bytes`: bytes of an erase block.
        """

    @property
    def ubi(self) -> UbiImage | None:
        """UBI, if the file is one."""

    @property
    def parts(self) -> list[ImagePart]:
        """What lies on each volume, or is the file."""

    @property
    def pages(self) -> tuple[int, int] | None:
        """Bytes of a page and of its OOB, if the file had OOB."""

    @property
    def problems(self) -> list[str]:
        """What is wrong in it, the first lines."""

    @property
    def problem_count(self) -> int:
        """How many lines there would be."""

    def files(self, part: int) -> list[ImageFile]:
        """The files of a part, a folder before what is in it."""

    def piece(self, part: int, inode: int, number: int) -> tuple[int, int, bytes]:
        """Data of a file: where it is in it, how many bytes, and these; none stand for zeros.

        Later pieces lie over earlier ones. Raises `ValueError` if it cannot be read.
        """

@final
class Results:
    """The results of a call of `run_cases`. A table without rows may have no columns."""

    @property
    def cases(self) -> CaseColumns:
        """Counts and times of each case."""

    @property
    def requests(self) -> RequestColumns:
        """Operations, if requested, without the rows that the sink has taken."""

    @property
    def flash(self) -> FlashColumns:
        """Flash operations, if requested, without the rows that the sink has taken."""

    @property
    def wear(self) -> WearColumns:
        """Erases of each block, if requested."""

    @property
    def file_names(self) -> list[str]:
        """Paths by `file_index` of `requests`."""

    @property
    def failures(self) -> list[Failure]:
        """Cases that have no rows, by case."""

    @property
    def surveys(self) -> list[Survey]:
        """What each power cut left, by case and in the order of its `cuts`."""

    @property
    def blocks(self) -> list[bytes]:
        """Bytes that surveys found and no seed generates, at most a page each."""

    @property
    def gc_choices(self) -> dict[int, list[int]]:
        """By case what JFFS2 chose (`jiffies % 128`) since the mark, if anything."""

    @property
    def unpriced(self) -> dict[int, str]:
        """By case the compressor whose time the board has no price for: times are too short."""

    @property
    def failed(self) -> dict[int, list[tuple[int, int]]]:
        """By case the calls that failed, if any: their result, 0 for short writes; how many."""

    @property
    def interrupted(self) -> BaseException | None:
        """The exception of a signal's handler or the sink, which ended the call early."""

def check_operations(text: str) -> str:
    """Canonical text of a flashbed-ops file. Raises `FormatError`."""

def body_offset(text: str) -> int:
    """Where the body of a flashbed-ops file begins, behind `prepared`; 0 if all of it is the body.

    The text is not copied. Raises `FormatError`.
    """

def run_cases(
    board_json: str,
    kernel_json: str,
    cases: Sequence[Case],
    recorded: Recorded,
    threads: int,
    sink: Callable[[Piece], object] | None = None,
    root: tuple[int, bytes] | None = None,
    dump: Dump | None = None,
) -> Results:
    """Runs cases on one board and kernel, given as JSON. Raises `ValueError` if that is wrong.

    `root` is the volume and the image of squashfs in which the files of the preparation are, `dump`
    what the chip holds before the preparation, in place of a new file system.

    With a `sink`, which is called on this thread, rows of long cases come in pieces. A piece whose
    `seq` begins at 0 replaces those of its case that came before. Ctrl-C ends the call within
    milliseconds: the results have what ended by then, and what the handler raised.
    """

@final
class Dump:
    """What a device's flash held, as the simulator begins with it."""

    def __new__(
        cls,
        image: Image,
        board_json: str,
        volume: str | None = None,
        compressor: str | None = None,
    ) -> Dump:
        """That of an image or a dump on a board's chip; of UBI the program's volume.

        UBIFS packs new data with the compressor, as a kernel's profile names it; by default with
        that of its superblock.

        Raises `ValueError` with one line for what the simulator does not mount.
        """

@final
class PieceSizer:
    """Compressed sizes of written data; recently written pages are kept for context."""

    def __new__(cls, threads: int) -> PieceSizer:
        """One that compresses on so many threads."""

    def sizes(self, data: bytes, writes: Sequence[tuple[int, int, int]]) -> bytes:
        """Sizes of the pieces of writes: each a file, an offset, and how much of the data is its.

        For each piece alone and in context, by lzo, zlib and zstd: 16 bits each, the low byte
        first. Raises `ValueError` if the lengths are not those of the data.
        """

def compressed_size(compressor: Literal["lzo", "zlib", "zstd"], data: bytes) -> int:
    """Bytes that a compressor of Linux 6.1 makes of at most 4,096, whether or not they are fewer.

    Raises `ValueError`, also for fewer than the 128 that zstd is modelled for.
    """

def check_board(board_json: str) -> None:
    """Raises `ValueError` for a chip, a partition or an ECC that cannot be: KEY, and why."""

def spi_phases(
    spi_json: str, kind: Literal["read", "program", "erase"], array_ns: int, data_bytes: int
) -> list[tuple[str, int, int, tuple[int, int, int] | None]]:
    """The phases of an operation of SPI-NAND that moves these bytes, as the simulator charges them.

    Each is its name, its cycles on the bus and its nanoseconds. The array's has also the wait
    before the first poll, that before others, and the number of polls. Raises `ValueError`.
    """

@final
class SpaceRow:
    """A part of a partition."""

    @property
    def layer(self) -> str:
        """Who keeps it: `ubi`, or the file system."""

    @property
    def name(self) -> str:
        """What for; docs/models/space.md has all names."""

    @property
    def units(self) -> int | None:
        """Erase blocks, or LEBs of UBIFS; None for bytes within them."""

    @property
    def bytes(self) -> int:
        """Its size. Less than nothing for what a full file system counts twice."""

@final
class SpaceTable:
    """Where the bytes of a partition are: `rows` and `left_bytes` add up to `partition_bytes`."""

    @property
    def partition_bytes(self) -> int:
        """All of it."""

    @property
    def size_bytes(self) -> int:
        """What df calls the size."""

    @property
    def left_bytes(self) -> int:
        """What df calls available."""

    @property
    def rows(self) -> list[SpaceRow]:
        """From the lowest layer up."""

    @property
    def facts(self) -> list[tuple[str, int]]:
        """Other numbers of the stack, by name."""

def fresh_space(
    board_json: str, kernel_json: str, fs: str, bad_blocks: Sequence[int]
) -> SpaceTable | None:
    """Where the bytes of the partition are on a fresh file system; None if no model knows.

    Raises `NotModelled`, or another `ValueError` if the partition cannot hold the file system.
    """

@final
class PreparedFile:
    """A file, folder or symbolic link that a preparation leaves."""

    @property
    def path(self) -> str:
        """Its path, after those of the folders above it."""

    @property
    def number(self) -> int:
        """Equal for the names of one file."""

    @property
    def content(self) -> bytes | None:
        """A file's bytes."""

    @property
    def target(self) -> str | None:
        """A symbolic link's target."""

def prepared_files(board_json: str, kernel_json: str, fs: str, prepare: str) -> list[PreparedFile]:
    """What a preparation leaves on the file system alone, in the order of paths.

    Raises `NotModelled`, or another `ValueError` if the preparation fails.
    """

@final
class BootStep:
    """A part of a boot."""

    @property
    def part(self) -> Literal["attach", "volume", "layer", "file"]:
        """What it is: UBI's attach, the mount of a volume or of the layer, a file that is read."""

    @property
    def volume(self) -> int | None:
        """The place of its volume in the layout."""

    @property
    def size_bytes(self) -> int | None:
        """The size of a file that was read."""

    @property
    def errno(self) -> int | None:
        """Why a file was not read."""

    @property
    def time_ns(self) -> int:
        """How long it took."""

    @property
    def reads(self) -> int:
        """Page reads of the chip."""

    @property
    def programs(self) -> int:
        """Page writes of the chip."""

    @property
    def erases(self) -> int:
        """Erases of the chip."""

    @property
    def busy_ns(self) -> int:
        """For how long the chip was busy."""

def boot_layout(
    board_json: str,
    kernel_json: str,
    *,
    chip: Chip,
    volumes: Sequence[tuple[str, bytes | None]],
    partitions: Sequence[int],
    root: int,
    files: Sequence[str],
    read_ahead_kib: int,
    dump: Dump | None = None,
) -> list[BootStep]:
    """Attaches UBI, mounts its volumes and reads files of the root; the parts in order.

    A volume is `squashfs` with its image, `program` or `nothing`; `root` is the place of the one
    with the root. `partitions` are the chip's first blocks of volumes on MTD; none for UBI. With a
    `dump` it is the first mount of that. `read_ahead_kib` is the window of the program's volume.
    Raises `NotModelled`, or another `ValueError` for a broken image.
    """

def written_file(path: str, length_bytes: int, request_bytes: int, seed: int) -> list[str]:
    """Operations that write a file in order, with incompressible bytes, and sync it."""

def settled(text: str, settle_ns: int) -> str:
    """A preparation with its end: sync, a pause for background work, and `prepared`."""

def parted(text: str, settle_ns: int) -> tuple[str, str]:
    """A flashbed-ops file as preparation and body: what is before its `prepared`, and after.

    Raises `FormatError`.
    """

def micro_prepare(file_bytes: int, settle_ns: int) -> str:
    """The preparation of `micro-read`."""

def micro_reads(
    *,
    pattern: str,
    requests: int,
    request_bytes: int,
    file_bytes: int,
    seed: int,
    pause_ns: int,
    advice: str | None,
) -> str:
    """The body of `micro-read`. Raises `ValueError` if the requests do not fit the file."""

def micro_writes(
    *,
    pattern: str,
    requests: int,
    request_bytes: int,
    file_bytes: int,
    seed: int,
    settle_ns: int,
) -> tuple[str, str]:
    """Preparation and body of `micro-write`. Raises `ValueError` as `micro_reads` does."""

def activity(ops: Sequence[str]) -> Literal["read", "write"] | None:
    """What a program with these operations does; None if it also computes."""

@final
class EnergyConstants:
    """`[energy]` of a board's profile."""

    def __new__(cls, energy_json: str) -> EnergyConstants:
        """Reads them from JSON, without their sources. Raises `ValueError`."""

    def power_row(
        self, *, activity: str | None, fs: str, pattern: str, read_ahead_kib: int
    ) -> int | None:
        """The number of the most specific row of mean powers that holds."""

    def energies(
        self,
        *,
        activity: str | None,
        fs: str,
        pattern: str,
        read_ahead_kib: int,
        time_ns: int | None,
        moved_bytes: int | None,
        done: Sequence[int | None],
        in_pauses: Sequence[int | None],
    ) -> dict[str, str | int | None]:
        """The columns of energies of a case; None is unknown.

        `done` has its reads, programs and erases of the flash, `in_pauses` those of them that began
        in a pause.
        """

@final
class Stretches:
    """When a case sleeps."""

    def __new__(cls, calls: Sequence[tuple[int, bool]]) -> Stretches:
        """Of calls in their order: when each began, and whether it is a pause."""

    def in_pauses(self, start_ns: bytes, kinds: bytes) -> list[int]:
        """How many reads, programs and erases of the flash began in a pause.

        Begins are 64-bit integers, kinds are bytes: 0, 1 and 2. Raises `ValueError`.
        """

DAY_S: Final[float]
"""Seconds of a day."""
YEAR_S: Final[float]
"""Seconds of a year."""
FEW_ERASES: Final[float]
"""Fewer erases, in all or of the worst block, say nothing about collecting or levelling."""

def is_steady(erases: float, programmed_blocks: float) -> bool:
    """Whether erasing kept up with programming."""

def lasting_erases(erases: float, programmed_blocks: float) -> float:
    """The likeliest erases of the long run: every page that is programmed is erased one day."""

def years(erases: float, per_second: float) -> float | None:
    """Years in which so many erases are used up; None for no end."""

def own_pace(seconds: float, busy_s: float) -> float | None:
    """How often a day a program runs that sleeps by itself; None for one without a pace."""
