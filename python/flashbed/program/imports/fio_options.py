"""The options of fio's job files: how their values are read, and what happens to each.

Options that change requests have a reader. Those that change reports, buffers or processors are
ignored. Those that change little are noted: the recording names them. The rest is refused, with the
reason.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass

__all__ = [
    "ALIASES", "ENGINES", "IGNORED", "NOTED", "NUMBER_MAX", "READERS", "REFUSED", "Amount", "Split",
    "Value", "refused_engine", "size_of",
]  # fmt: skip

NUMBER_MAX = 2**60


@dataclass(frozen=True)
class Amount:
    """A number of bytes, or of per cent of a file."""

    number: int
    percent: bool = False

    def of(self, whole: int) -> int:
        """In bytes."""
        return whole * self.number // 100 if self.percent else self.number


@dataclass(frozen=True)
class Split:
    """Block sizes with weights; `low` and `high` of a range."""

    sizes: tuple[tuple[int, int], ...]
    low: int = 0
    high: int = 0

    @property
    def least(self) -> int:
        """The smallest block."""
        return self.low or min(size for size, _ in self.sizes)


Triple = tuple[int, int, int]
"""A value for reads, one for writes, one for trims."""
Splits = tuple[Split, Split, Split]
Distribution = tuple[str, tuple[float, ...], tuple[tuple[int, int], ...]]
Value = int | str | Amount | Triple | Splits | Distribution
_SIZE = re.compile(r"(\d{1,18})(?:([kmgtpKMGTP])?(?:[iI]?[bB])?|(%))\Z")
_HEX = re.compile(r"0[xX][0-9a-fA-F]{1,15}\Z")
_TIME = re.compile(r"(\d{1,15})(us|usec|ms|msec|s|m|h|d|D|H|M|S)?\Z")
_SECONDS_NS = {"s": 10**9, "m": 60 * 10**9, "h": 3600 * 10**9, "d": 86_400 * 10**9}
_UNITS_NS = {"us": 1000, "usec": 1000, "ms": 10**6, "msec": 10**6, **_SECONDS_NS}
_TIME_NS_MAX = 10**17
_SPLIT_MAX = 64
_FLOAT = re.compile(r"\d{1,6}(?:\.\d{1,9})?\Z")


def _shown(text: str) -> str:
    return repr(text[:40])


def _amount(text: str) -> Amount:
    found = _SIZE.match(text)
    if found is None:
        if _HEX.match(text):
            return Amount(int(text, 16))
        raise ValueError(f"{_shown(text)} is no size")
    if found[3]:
        if not 0 < int(found[1]) <= 100:
            raise ValueError(f"{_shown(text)}: must be from 1% to 100%")
        return Amount(int(found[1]), percent=True)
    unit = (found[2] or "").lower()
    value = int(found[1]) << {"": 0, "k": 10, "m": 20, "g": 30, "t": 40, "p": 50}[unit]
    if value > NUMBER_MAX:
        raise ValueError(f"{_shown(text)}: a file has {NUMBER_MAX:,} bytes at most")
    return Amount(value)


def size_of(text: str) -> int:
    """A size in bytes. Raises `ValueError`."""
    amount = _amount(text)
    if amount.percent:
        raise ValueError(f"{_shown(text)}: per cent of what?")
    return amount.number


def _range_of(text: str) -> Amount:
    """A size, or the largest of a range."""
    parts = re.split(r"[-:]", text)
    return max((_amount(part) for part in parts[:2]), key=lambda one: one.number)


def _count(text: str) -> int:
    if not text.isascii() or not text.isdigit() or len(text) > 12:
        raise ValueError(f"{_shown(text)} is not a whole number")
    return int(text)


def _flag(text: str) -> int:
    return _count(text or "1")


def _per_cent(text: str) -> int:
    if _count(text) > 100:
        raise ValueError(f"{_shown(text)}: must be from 0 to 100")
    return int(text)


def _time(unit: str) -> Callable[[str], int]:
    def read(text: str) -> int:
        found = _TIME.match(text)
        if found is None:
            raise ValueError(f"{_shown(text)} is no time")
        value = int(found[1]) * _UNITS_NS[(found[2] or unit).lower()]
        if value > _TIME_NS_MAX:
            raise ValueError(f"{_shown(text)}: longer than three years")
        return value

    return read


def _delay(text: str) -> int:
    return _time("s")(text.split("-")[0].split(":")[0])


def _triple(read: Callable[[str], int]) -> Callable[[str], Triple]:
    """`A`, `READ,WRITE`, `READ,WRITE,TRIM`; an empty one is 0, the last also for those behind."""

    def parse(text: str) -> Triple:
        parts = [part.strip() for part in text.split(",")]
        if len(parts) > 3:
            raise ValueError(f"{_shown(text)}: more than three values")
        values = [read(part) if part else 0 for part in parts]
        values += [values[-1]] * (3 - len(values))
        return values[0], values[1], values[2]

    return parse


def _split(text: str) -> Split:
    parts = text.split(":")
    if len(parts) > _SPLIT_MAX:
        raise ValueError(f"{len(parts):,} sizes; {_SPLIT_MAX} at most")
    sizes: list[tuple[int, int]] = []
    unsaid = 0
    for part in parts:
        size, _, share = part.partition("/")
        sizes.append((size_of(size), _per_cent(share) if share else -1))
        unsaid += not share
    left = 100 - sum(share for _, share in sizes if share > 0)
    if left < 0:
        raise ValueError(f"{_shown(text)}: more than 100%")
    split = tuple((size, share if share >= 0 else left // unsaid) for size, share in sizes)
    if not any(share for _, share in split):
        raise ValueError(f"{_shown(text)}: no size has a share")
    return Split(tuple(one for one in split if one[1]))


def _block_range(text: str) -> Split:
    low, found, high = re.split(r"([-:])", text, maxsplit=1) if re.search("[-:]", text) else (
        text, "", text)  # fmt: skip
    least, most = size_of(low.strip()), size_of(high.strip())
    if least > most or not least:
        raise ValueError(f"{_shown(text)} is no range of sizes")
    return Split(((most, 100),), least, most) if found else Split(((most, 100),))


def _splits(read: Callable[[str], Split]) -> Callable[[str], Splits]:
    def parse(text: str) -> Splits:
        parts = [read(part) for part in text.split(",") if part]
        if not 1 <= len(parts) <= 3:
            raise ValueError(f"{_shown(text)}: one to three values")
        parts += [parts[-1]] * (3 - len(parts))
        return parts[0], parts[1], parts[2]

    return parse


_RW = re.compile(
    r"(read|write|randread|randwrite|rw|readwrite|randrw|trim|randtrim|trimwrite|randtrimwrite)"
    r"(?::(-?\w+))?\Z"
)


def _rw(text: str) -> str:
    found = _RW.match(text)
    if found is None:
        raise ValueError(
            f"{_shown(text)} is not read, write, rw, randread, randwrite, randrw, trim …"
        )
    if found[2] is not None:
        _amount(found[2].removeprefix("-"))
    return text.replace("readwrite", "rw")


def _distribution(text: str) -> Distribution:
    kind, _, rest = text.partition(":")
    if kind == "zoned":
        zones = []
        for part in rest.split(",")[0].split(":")[:_SPLIT_MAX]:
            share, _, of_file = part.partition("/")
            zones.append((_per_cent(share), _per_cent(of_file) if of_file else 0))
        left = 100 - sum(size for _, size in zones)
        if left < 0 or not any(share for share, _ in zones):
            raise ValueError(f"{_shown(text)}: zones of more than 100%, or of none")
        return kind, (), tuple((share, size or left) for share, size in zones)
    if kind not in ("random", "zipf", "pareto", "normal", "gauss"):
        raise ValueError(f"{_shown(text)}: must be random, zipf, pareto, normal or zoned")
    numbers = rest.split(",")[0].split(":") if rest else []
    if not all(_FLOAT.match(number) for number in numbers):
        raise ValueError(f"{_shown(text)}: {kind} needs a number")
    return kind, tuple(float(number) for number in numbers), ()


def _sync(text: str) -> str:
    words = {"0": "", "none": "", "1": "sync", "sync": "sync", "dsync": "dsync", "": "sync"}
    if text not in words:
        raise ValueError(f"{_shown(text)}: must be none, sync or dsync")
    return words[text]


def _name(text: str) -> str:
    if "\0" in text or len(text.encode()) > 4000:
        raise ValueError("a name that has a NUL byte or more than 4,000 bytes")
    return text


def _zone_mode(text: str) -> str:
    if text != "none":
        raise ValueError(f"{_shown(text)}: zones of a device; a file has none")
    return text


def _kilobyte(text: str) -> int:
    if _count(text) != 1024:
        raise ValueError("only 1024 is read")
    return 1024


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


NOTED = _words(
    """
    sync_file_range write_barrier blockalign offset_align unlink_each_loop fadvise_hint fallocate
    pre_read ramp_size random_sequence_stride thinktime_iotime rate_ignore_thinktime
    replay_no_stall replay_time_scale replay_align replay_scale replay_skip verify_offset
    verify_interval verify_backlog_batch create_on_open openfiles
    """
)
"""Options that add calls, or move or delay some. A recording says that it lacks them."""

READERS: Mapping[str, Callable[[str], Value]] = {
    "rw": _rw, "bs": _triple(size_of), "bsrange": _splits(_block_range), "bssplit": _splits(_split),
    "size": _amount, "filesize": _range_of, "io_size": _amount, "offset": _amount,
    "offset_increment": _amount, "filename": _name, "directory": _name, "filename_format": _name,
    "nrfiles": _count, "file_service_type": _name, "numjobs": _count, "loops": _count,
    "number_ios": _count, "stonewall": _flag, "wait_for": _name, "startdelay": _delay,
    "thinktime": _time("us"), "thinktime_blocks": _count, "rate": _triple(size_of),
    "rate_iops": _triple(_count), "runtime": _time("s"), "time_based": _flag, "fsync": _count,
    "fdatasync": _count, "end_fsync": _flag, "end_syncfs": _flag, "fsync_on_close": _flag,
    "sync": _sync, "direct": _flag, "buffered": _flag, "overwrite": _flag, "unlink": _flag,
    "create_only": _flag, "rwmixread": _per_cent, "rwmixwrite": _per_cent, "norandommap": _flag,
    "random_distribution": _distribution, "percentage_random": _triple(_per_cent),
    "randseed": _count, "verify": _name, "do_verify": _flag, "verify_only": _flag,
    "verify_backlog": size_of, "ioengine": _name, "iodepth": _count, "flow": _count,
    "read_iolog": _name, "name": _name, "zonemode": _zone_mode, "kb_base": _kilobyte,
    "fill_device": _flag, **dict.fromkeys(NOTED, _name),
}  # fmt: skip
"""Options that change requests."""

ALIASES = {
    "readwrite": "rw", "blocksize": "bs", "blocksize_range": "bsrange", "io_limit": "io_size",
    "wait_for_previous": "stonewall", "timeout": "runtime", "nr_files": "nrfiles",
    "fill_fs": "fill_device", "ba": "blockalign",
    "start_delay": "startdelay", "file_size": "filesize",
}  # fmt: skip

_NULL = "does no input or output"
_REMOTE = "asks another machine, not a file system"
_DEVICE = "gives a device its own commands"
_MEMORY = "stores to persistent memory, or a GPU's"
_REASONS = {
    **dict.fromkeys(("null", "cpp_null"), _NULL), "cpuio": "uses the processor only",
    "page_fault": "maps memory, not a file",
    "exec": "runs other programs: record them with flashbed record",
    "mtd": "writes the partition itself, and no recording can: the workload raw of an experiment"
           " does the same with fs = mtd",
    "e4defrag": "is an ioctl of ext4",
    **dict.fromkeys(("net", "netsplice", "rdma", "rbd", "rados", "gfapi", "gfapi_async", "libhdfs",
                     "dfs", "http", "nfs", "nbd", "libiscsi", "rpma_apm_client",
                     "rpma_apm_server", "rpma_gpspm_client", "rpma_gpspm_server", "ime_psync",
                     "ime_psyncv", "ime_aio"), _REMOTE),
    **dict.fromkeys(("sg", "io_uring_cmd", "xnvme", "libzbc", "libblkio", "guasi"), _DEVICE),
    **dict.fromkeys(("dev-dax", "libpmem", "pmemblk", "libcufile", "libhipfile"),
                    _MEMORY),
}  # fmt: skip


ENGINES = _words(
    "sync psync vsync pvsync pvsync2 libaio io_uring posixaio solarisaio windowsaio splice falloc"
    " ftruncate filecreate filestat filedelete dircreate dirstat dirdelete mmap"
)
"""Engines whose requests are calls on files."""


def refused_engine(name: str) -> str:
    """Why an engine is refused."""
    why = _REASONS.get(name.partition(":")[0])
    return f"{_shown(name)} {why}" if why else f"{_shown(name)} is not an engine of fio for files"


_ZONES = "zones of a device; a file has none"
REFUSED: Mapping[str, str] = {
    "opendir": "the files of that folder are not known here",
    "merge_blktrace_file": "import the trace with import blktrace",
    "zonesize": _ZONES, "zonerange": _ZONES, "zoneskip": _ZONES, "zonecapacity": _ZONES,
    "sprandom": "prepares a whole SSD",
    "trim_percentage": "trims behind writes are not modelled",
    "trim_backlog": "trims behind writes are not modelled",
    "blocksize_unaligned": "blocks of any alignment are not modelled",
    "bs_unaligned": "blocks of any alignment are not modelled",
    "bs_is_seq_rand": "other blocks for sequential requests are not modelled",
    "file_append": "the size that the file has is not known here",
    "rw_sequencer": "an offset that stays is not modelled",
}  # fmt: skip
"""Options that change requests in a way that is not modelled."""

IGNORED = _words(
    """
    description unit_base job_start_clock_id clocksource gtod_reduce gtod_cpu ramp_time
    unique_filename filetype lockfile ioscheduler create_serialize create_fsync allow_file_create
    allow_mounted_write read_beyond_wp max_open_zones job_max_open_zones ignore_zone_limits
    zone_reset_threshold zone_reset_frequency recover_zbd_write_error write_zone_remainders
    unified_rw_reporting randrepeat allrandrepeat write_hint softrandommap random_generator
    zero_buffers refill_buffers scramble_buffers buffer_compress_percentage buffer_compress_chunk
    buffer_pattern dedupe_percentage dedupe_mode dedupe_working_set_percentage dedupe_global
    invalidate iomem mem iomem_align mem_align hugepage-size lockmem spr_num_regions spr_op spr_cs
    cmdprio_percentage cmdprio_class cmdprio_hint cmdprio cmdprio_bssplit fixedbufs nonvectored
    force_async registerfiles sqthread_poll sqthread_poll_cpu cmd_type cdb_len hipri userspace_reap
    hipri_percentage nowait uncached atomic libaio_vectored fdp dataplacement plid_select
    fdp_pli_select plids fdp_pli dp_scheme cpuload cpuchunks cpumode exit_on_io_done skip_bad
    stat_type iodepth_batch_submit iodepth_batch iodepth_batch_complete_min iodepth_batch_complete
    iodepth_batch_complete_max iodepth_low serialize_overlap io_submit_mode thinkcycles
    thinktime_spin thinktime_blocks_type rate_min ratemin rate_iops_min rate_process rate_cycle
    latency_target latency_window latency_percentile latency_run max_latency write_iolog
    read_iolog_chunked replay_redirect thread threads comm nice prio prioclass priohint
    cpus_allowed cpus_allowed_policy cpumask numa_cpu_nodes numa_mem_policy cgroup cgroup_weight
    cgroup_nodelete flow_id flow_sleep flow_watermark exitall exit_what exec_prerun exec_postrun
    uid gid verify_pattern verify_pattern_interval verify_policy verify_fatal verify_dump
    verify_async verify_async_cpus verify_state_save verify_state_load verifysort verifysort_nr
    experimental_verify verify_write_sequence verify_header_seed trim_verify_zero
    trim_backlog_batch steadystate ss steadystate_duration ss_dur steadystate_ramp_time ss_ramp
    steadystate_check_interval ss_interval per_job_logs group_reporting new_group stats
    write_bw_log write_lat_log write_hist_log write_iops_log log_entries log_avg_msec log_hist_msec
    log_hist_coarseness log_window_value log_max_value log_max log_offset log_prio log_issue_time
    log_compression log_compression_cpus log_store_compressed log_unix_epoch log_alternate_epoch
    log_alternate_epoch_clock_id block_error_percentiles bwavgtime iopsavgtime disk_util
    disable_lat disable_clat disable_slat disable_bw disable_bw_measurement slat_percentiles
    clat_percentiles lat_percentiles percentile_list significant_figures exitall_on_error
    continue_on_error ignore_error error_dump profile mmapshared odirect sync_write bs_align
    hostname port protocol proto listen pingpong interface ttl nodelay window_size mss namenode
    clustername rbdname clientname conf busy_poll touch_objects pool cont chunk_size object_class
    volume brick nfs_url uri http_host http_user http_pass https http_mode http_s3_region
    http_s3_key http_s3_keyid http_s3_storage_class http_swift_auth_token http_verbose donorname
    inplace program arguments std_redirect grace_time verb bindname gpu_dev_ids gpu_dev_id cuda_io
    rocm_io md_per_io_size pi_act pi_chk apptag apptag_mask num_range readfua writefua write_mode
    read_mode verify_mode sg_write_mode stream_id hdfsdirectory libblkio_driver libblkio_path
    use_os_rand randrepeat_seed rand_seed zone_append_unaligned do_not_verify minimal terse
    """
)
"""Options that change no request here: reports, buffers, processors, what an engine does with
many requests at once."""
