"""Takes the release of the kernel out of what a recording says of its machine.

PYTHON without_release.py RECORDING
"""

import sys
from pathlib import Path

from flashbed.program.recording.file import RecordingWriter, open_recording

path = Path(sys.argv[1])
new = path.with_suffix(".new")
recording = open_recording(path)
system, _, processor = recording.about.machine.split(" ")
about = recording.about.model_copy(update={"machine": f"{system} {processor}"})
with RecordingWriter(new, about) as writer:
    for call in (*recording.existed(), *recording.calls()):
        writer.add(call)
new.replace(path)
